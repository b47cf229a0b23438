/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * retain.h - `crema collect --keep TIME --max-bytes BYTES`: drops old runs, keeps their totals.
 *
 * Only whole runs are dropped, the oldest first: those that ended longer ago than TIME, and as many
 * as it takes for the journal to be no larger than BYTES. Never one that is in progress (something
 * of it runs, or did until a minute ago), and for BYTES never the newest: then the journal
 * is larger than it should be, which retain_text() reports.
 *
 * A run is in the segments that were written while it ran, together with others. So a segment is
 * unlinked when no run needs it any more; a run whose segments another one still needs is dropped
 * all the same: what is left of it in them is not read. When the cluster falls idle, a new
 * segment begins, so that mostly a segment holds one run or a part of one.
 *
 * The work is done in a child process. It surveys the journal by footers (model/footer.h) and takes
 * what is left of a run that goes from its totals (model/run_totals.h), which it reads the run for
 * if they are not there. Only runs without spans of their own are always read. What workers that go
 * on sent in segments that go comes from their footers; what a start needs of these segments is in
 * the collector's memory, which the child has a copy of. It writes a new file of dropped runs next
 * to the journal (model/dropped.h) and syncs it, gives it its name with one rename(), syncs the
 * folder, and only then unlinks. So at any moment a run is there whole, or its totals are. What a
 * killed child has left, the next one tidies up.
 */
#ifndef CREMA_COLLECTOR_RETAIN_RETAIN_H
#define CREMA_COLLECTOR_RETAIN_RETAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "collector/journal/journal.h"
#include "collector/live/live.h"
#include "collector/loop/loop.h"

#define RETAIN_SETTLED_PLAIN_NS UINT64_C(600000000000) /* without Dask: as PLAIN_IDLE_SECONDS */
#define RETAIN_MARGIN_NS                                                                           \
	UINT64_C(15000000000) /* a run needs what was sampled this long before it */
#define RETAIN_SEGMENTS 16u   /* so many at least make up max_bytes */
#define RETAIN_SEGMENT_MIN (64u << 10)

struct retain_config {
	const char *dir, *journal_dir; /* must outlive it */
	uint64_t keep_ns, max_bytes;   /* 0: no bound */
	uint64_t whole_bytes;	       /* to read at once (model/selection.h); 0: 32 MiB */
	journal_head state;	       /* the checkpoint of what goes; NULL: there is none */
	void *state_arg;
};

/* The two options' texts, NULL: not given. 0, or -EINVAL after one line that says what is wrong. */
int retain_parse(struct retain_config *config, const char *keep, const char *max_bytes);

/* What the child tells. */
struct retain_result {
	uint64_t dropped;	 /* runs, this time */
	uint64_t dropped_before; /* runs, earlier */
	uint64_t unlinked, unlinked_bytes;
	uint64_t bytes; /* of the journal afterwards */
	char over[256]; /* why it is still larger than it should be; "": it is not */
};

struct retain;

struct retain *retain_new(struct loop *loop, struct journal *journal,
			  const struct retain_config *config); /* NULL: out of memory */
void retain_free(struct retain *retain);
/* Once a second. */
void retain_tick(struct retain *retain, const struct live *live);
/* One line for people while the journal is larger than it should be, else "". */
const char *retain_text(const struct retain *retain);
void retain_get(const struct retain *retain, struct retain_result *last,
		struct retain_config *config);
/* How large segments should be for this bound. */
uint64_t retain_segment_bytes(uint64_t max_bytes);

/* In the child: drops what is to be dropped of the segments created before `current_ns`. */
int retain_run(const struct retain_config *config, uint64_t current_ns, uint64_t now_ns,
	       struct retain_result *result);

#endif
