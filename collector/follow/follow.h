/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * follow.h - sends the journal's records to a destination, each once, in the order of the journal.
 *
 * It reads the segments while the collector writes them, oldest first, and never writes to the
 * journal; the collector does not notice it. A record that an agent sent twice is in the journal
 * twice, with one number; the first one counts. A start reads the headers of all frames from the
 * oldest segment on, to find duplicates, and sends everything after the destination's last record.
 *
 * Segments that retention drops before they were followed are lost to the destination; `lost` is
 * set. A start after a drop does not know the dropped segments: a worker's hello, or the second
 * copy of a record, is sent again, with the same id. Files of CREMA_COLLECTOR=dir: and records in
 * an agent's spool are not followed. One thread.
 */
#ifndef CREMA_COLLECTOR_FOLLOW_FOLLOW_H
#define CREMA_COLLECTOR_FOLLOW_FOLLOW_H

#include <signal.h>

#include "collector/follow/destination.h"
#include "collector/follow/tail.h"
#include "common/table.h"

struct follow {
	const char *dir; /* the data directory */
	struct destination *to;
	bool once;			   /* return at the end of the journal */
	const volatile sig_atomic_t *stop; /* not 0: return soon */
	uint64_t damaged;		   /* unreadable frames */
	bool lost; /* the segment of the destination's last record is gone */

	struct tail tail;
	struct table streams;
	struct arena arena;
	struct buf scratch, line;
	uint64_t settled_ns;
};

/* Runs until `stop`, or with `once` until the end: 0 or -errno. Errors of the destination are in
 * its `why`, all others are of the journal (-ENOENT: there is none; -ESTALE: the destination's last
 * record is from another journal). */
int follow_run(struct follow *f);
void follow_release(struct follow *f);

#endif
