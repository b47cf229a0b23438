/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * section_row.h - rows of sections and gauges in shared memory: found by path, span, prefix and
 * flags, made on first use.
 *
 * In a full table, a row that has nothing open and is fully acknowledged is reused. Sections of
 * tasks with a dataset have a row for each dataset, in a separate part of the table: if that is
 * full, one row holds all datasets that found no room. Names that do not fit in the table share one
 * row for each span, and get no text: code that makes up endless names cannot fill the strings. GIL
 * held.
 */
#ifndef CREMA_SHIM_COUNT_SECTION_ROW_H
#define CREMA_SHIM_COUNT_SECTION_ROW_H

#include "shim/shim.h"

/* Never NULL; its path is 0 if it did not fit. */
struct crema_section *section_row(const struct crema_task *task, const char *path, uint32_t bytes,
				  uint32_t flags);
/* NULL: did not fit, which is counted. */
struct crema_gauge *gauge_row(const struct crema_task *task, const char *path, uint32_t bytes,
			      uint32_t flags);

struct row_delta {
	uint64_t wall_ns;
	const struct crema_counters *own;
	const uint64_t *pool_time;
};

void row_begun(struct crema_section *r);
/* Adds a section that has ended; `untold`: only its number, the section around it has the rest. */
void row_add(struct crema_section *r, const struct crema_task *task, const struct row_delta *d,
	     uint32_t untold);
void row_broken(struct crema_section *r, struct crema_gauge *g);

/* From here on memory is measured, */
void gauge_begun(struct crema_gauge *g);
/* ... up to here. peak 0: unknown. */
void gauge_memory(struct crema_gauge *g, double begin, double end, double peak);
void gauge_value(struct crema_gauge *g, int stat, double value);

#endif
