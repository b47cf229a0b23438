/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch.h - feeds the journals of several collectors into the live numbers, each record once.
 *
 * It reads the segments of all directories while the collectors write them (follow/tail.h), and
 * never writes to a directory. A worker may move from one collector to another, so a stream's
 * records may be in several journals, and some of them in two: what counts is decided by the
 * record's worker, stream and number, as in a report over the same directories. Journals are read
 * independently: the order of records between them does not matter, because messages are cumulative
 * and dated by their worker, and ended attempts are a set.
 *
 * A gap in a stream's numbers may be filled by another journal: it counts as lost once it has been
 * there for WATCH_HOLD seconds while all journals were read to their ends. Until a journal has been
 * read to its end no number is known; while any cannot be read, the sums lack its records and
 * what is lost is unknown. What the worker refused is not lost (model/lost.h).
 *
 * Runs that were dropped by retention before they were read are not in the sums; the latest totals
 * of workers that continue, and the numbers of their records, are (model/dropped.h). Segments that
 * are removed later change nothing.
 *
 * Memory: that of `live`, about 200 bytes for each stream of each worker, and 100 for each worker.
 *
 * In live.json:
 *   journals  [{dir, state, error, quiet_seconds, bytes_read, bytes, runs_dropped,
 *             segments_missed, damaged_frames, damaged_bytes}]: state: read (to its end), reading,
 *             missing (the directory has no journal), unreadable; error: why, or null;
 *             quiet_seconds: since it had a new record, null: none yet; bytes: its size while it is
 *             being read; runs_dropped: dropped before they were read; segments_missed: whether
 *             segments were dropped before they were read
 *   journals_trouble  what the sums lack, one line; null: nothing
 *
 * One thread, the loop's. A file system that does not answer stalls it.
 */
#ifndef CREMA_COLLECTOR_WATCH_WATCH_H
#define CREMA_COLLECTOR_WATCH_WATCH_H

#include "collector/emit/emit_json.h"
#include "collector/live/live.h"
#include "collector/loop/loop.h"

#define WATCH_HOLD 10 /* seconds */
#define WATCH_POLL_MS 200
#define WATCH_RANGES 4096u /* of a stream's numbers: beyond, the oldest gap counts as lost */

struct watch;

/* Both outlive it; more: NULL, or further directories with NULL at the end. NULL: out of memory. */
struct watch *watch_new(struct loop *loop, struct live *live, const char *dir,
			const char *const *more);
void watch_free(struct watch *watch);
/* Once a second. */
void watch_tick(struct watch *watch);
/* Whether all journals that can be read were read to their ends. */
bool watch_is_settled(const struct watch *watch);
/* The members of live.json. */
void watch_json(void *watch, struct json *j);
/* The number of journals by state, for Prometheus. */
void watch_metrics(const struct watch *watch, struct sink *s);

#endif
