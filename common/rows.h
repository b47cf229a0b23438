/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rows.h - the numbers of contract/rows.def as tables, in the order of their enums in ids.h.
 *
 * A row's struct has them as members and, over the same memory, as number[]: what treats all alike
 * is a loop over a table. Static, any thread.
 */
#ifndef COMMON_ROWS_H
#define COMMON_ROWS_H

#include "ids.h"

enum row_merge { ROW_SUM, ROW_MAX, ROW_LATEST };

struct row_number {
	const char *name; /* on the wire */
	enum row_merge merge;
};

extern const struct row_number row_file[CREMA_FILE_VALUES];
extern const struct row_number row_codec[CREMA_CODEC_NUMBERS];
extern const struct row_number row_server[CREMA_SERVER_NUMBERS];

#endif
