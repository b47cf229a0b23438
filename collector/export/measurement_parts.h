/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measurement_parts.h - what the files of the measurement folder share (see measurement.c).
 *
 * Each function writes members into the object of metrics.json that is open. roastcoffea's tables
 * and plots take a missing member as "not there", but stumble over null: unknown is left out.
 */
#ifndef COLLECTOR_EXPORT_MEASUREMENT_PARTS_H
#define COLLECTOR_EXPORT_MEASUREMENT_PARTS_H

#include "collector/report/report_parts.h"

/* One member, unless it is unknown. */
void measurement_put(struct json *j, const char *name, struct value v);
/* A tuple as Python's repr() writes it, for keys: text members, then numbers. */
void measurement_tuple(struct buf *out, const char *const *text, size_t texts,
		       const int64_t *number, size_t numbers);
/* Chunks: raw rows, their times and bytes by key, sums and spreads, datasets. */
void measurement_chunks(const struct report *r, struct json *j);
/* What was read of each file, and packed how. */
void measurement_files(const struct report *r, struct json *j);
/* Named parts of the tasks' own code. */
void measurement_sections(const struct sections *all, struct json *j);
/* Samples on one grid for all workers. */
void measurement_tracking(const struct facts *f, struct json *j);
/* Dask's digests, with true storage and codec numbers where Dask has its own frames and spill. */
void measurement_spans(const struct facts *f, struct json *j);

#endif
