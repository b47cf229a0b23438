/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * footers.h - writes the footer of each finished segment (model/footer.h) and the totals of each
 * finished run (runs/run_totals.h).
 *
 * In a child process, after the start, whenever a segment was begun, and TOTALS_SETTLED_SECONDS
 * after the cluster fell idle, when a segment begins as well: a footer costs reading its segment
 * once, totals reading the run once. The last segment gets its own when the collector ends; where
 * that was killed, at the next start. Footers without a segment are removed. Nothing depends on
 * them: a folder that cannot be written costs the reports' time, and one line reports it.
 */
#ifndef CREMA_COLLECTOR_RETAIN_FOOTERS_H
#define CREMA_COLLECTOR_RETAIN_FOOTERS_H

#include "collector/journal/journal.h"
#include "collector/live/live.h"
#include "collector/loop/loop.h"

struct footers;

/* The directories must outlive it. NULL: out of memory. */
struct footers *footers_new(struct loop *loop, struct journal *journal, const char *dir,
			    const char *journal_dir);
/* Once a second. */
void footers_tick(struct footers *footers, const struct live *live);
/* At the end, once the journal is closed: of the last segment; frees it. */
void footers_end(struct footers *footers, uint64_t segment_ns);

/* Footers of the segments created from then on and before: 0 or -errno. */
int footers_write(const char *dir, const char *journal_dir, uint64_t from_ns, uint64_t before_ns);

#endif
