/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * footers.h - writes the footer of each finished segment (model/footer.h) and the totals of each
 * finished run (runs/run_totals.h).
 *
 * A child process does it after the start, whenever a segment was begun, and TOTALS_SETTLED_SECONDS
 * after the cluster became idle, when a segment begins as well. A footer requires reading its
 * segment once, totals require reading the run once. The last segment gets its footer when the
 * collector ends or, if that was killed, at the next start. Footers without a segment are removed.
 * They are optional: if the folder is not writable, reports take longer, and one line reports it.
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
/* After the journal is closed: writes the last segment's footer, and frees everything. */
void footers_end(struct footers *footers, uint64_t segment_ns);

/* Writes footers of segments created from from_ns on and before the other time: 0 or -errno. */
int footers_write(const char *dir, const char *journal_dir, uint64_t from_ns, uint64_t before_ns);

#endif
