/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * retain.h - `crema collect --keep TIME --max-bytes BYTES`: drops old runs, keeps their totals.
 *
 * Only whole runs are dropped, the oldest first: those that ended longer ago than TIME, and as many
 * as needed to bring the journal below BYTES. A run in progress (a task runs, or ran until a minute
 * ago) is never dropped, and for BYTES the newest run is not either: the journal then exceeds its
 * limit, which retain_text() reports.
 *
 * The segments that were written while a run was in progress also contain other runs. A segment is
 * unlinked when no run needs it any longer. A run is dropped even if another run still needs its
 * segments: its records there are not read. When the cluster becomes idle, a new segment begins, so
 * most segments contain one run or a part of one.
 *
 * A child process does the work. It surveys the journal by footers (model/footer.h) and keeps a
 * dropped run's totals (runs/run_totals.h); if these are missing, it reads the run. Only runs
 * without separate spans are always read. What continuing workers sent in dropped segments comes
 * from the footers; what a start needs of these segments is in the collector's memory, of which the
 * child has a copy. The child writes a new file of dropped runs next to the journal
 * (model/dropped.h), syncs and renames it, syncs the folder, and only then unlinks. So at any
 * moment either the whole run or its totals are present. The next child removes what a killed one
 * left behind.
 */
#ifndef CREMA_COLLECTOR_RETAIN_RETAIN_H
#define CREMA_COLLECTOR_RETAIN_RETAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "collector/journal/journal.h"
#include "collector/live/live.h"
#include "collector/loop/loop.h"

#define RETAIN_SETTLED_PLAIN_NS UINT64_C(600000000000) /* without Dask: as PLAIN_IDLE_SECONDS */
#define RETAIN_MARGIN_NS UINT64_C(15000000000) /* a run needs samples from this long before it */
#define RETAIN_SEGMENTS 16u		       /* max_bytes allows at least this many segments */
#define RETAIN_SEGMENT_MIN (64u << 10)

struct retain_config {
	const char *dir, *journal_dir; /* must outlive it */
	uint64_t keep_ns, max_bytes;   /* 0: no limit */
	uint64_t whole_bytes;	       /* to read at once (runs/read_runs.h); 0: 32 MiB */
	journal_head state;	       /* the checkpoint of dropped segments; NULL: none */
	void *state_arg;
};

/* The texts of the two options, NULL: not given. 0, or -EINVAL after a line about the error. */
int retain_parse(struct retain_config *config, const char *keep, const char *max_bytes);

/* The child's report. */
struct retain_result {
	uint64_t dropped;	 /* runs, this time */
	uint64_t dropped_before; /* runs, before */
	uint64_t unlinked, unlinked_bytes;
	uint64_t bytes; /* of the journal afterwards */
	char over[256]; /* why it is still larger than allowed; "": it is not */
};

struct retain;

struct retain *retain_new(struct loop *loop, struct journal *journal,
			  const struct retain_config *config); /* NULL: out of memory */
void retain_free(struct retain *retain);
/* Once a second. */
void retain_tick(struct retain *retain, const struct live *live);
/* One line for people while the journal is larger than allowed, else "". */
const char *retain_text(const struct retain *retain);
void retain_get(const struct retain *retain, struct retain_result *last,
		struct retain_config *config);
/* The appropriate size of segments for this limit. */
uint64_t retain_segment_bytes(uint64_t max_bytes);

/* In the child: drops what is due among the segments created before `current_ns`. */
int retain_run(const struct retain_config *config, uint64_t current_ns, uint64_t now_ns,
	       struct retain_result *result);

#endif
