/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * digest_rows.h - the digests in a probe's JSON text, read without building a tree.
 *
 * Digests are most of the text: up to 58 kB, twice a second. digest_rows_split() reads them as
 * probe.py writes them. Any other layout is left to digest_rows_of() and a JSON parser. Texts of
 * rows point into the JSON text or its tree. One thread.
 */
#ifndef CREMA_COLLECTOR_MODEL_DIGEST_ROWS_H
#define CREMA_COLLECTOR_MODEL_DIGEST_ROWS_H

#include <jansson.h>

#include "collector/model/model.h"
#include "common/buf.h"

enum digest_text {
	DIGEST_CONTEXT,
	DIGEST_SPAN,
	DIGEST_PREFIX,
	DIGEST_ACTIVITY,
	DIGEST_UNIT,
	DIGEST_TEXTS
};

struct digest_row {
	struct text text[DIGEST_TEXTS]; /* ptr NULL: JSON null */
	double value;
};

struct digest_rows {
	struct digest_row *v;
	size_t n, cap;
};

/* Adds the rows, and appends the text without them to `rest`. False: another layout, or no memory;
 * `rows` and `rest` then hold a part. */
bool digest_rows_split(struct text json, struct digest_rows *rows, struct buf *rest);
/* Adds the rows of a JSON array; rows without a number are skipped. 0 or -ENOMEM. */
int digest_rows_of(const json_t *list, struct digest_rows *rows);

#endif
