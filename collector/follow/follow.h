/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * follow.h - the journal's records to a destination, each once, in the order of the journal.
 *
 * Reads the segments as the collector writes them, oldest first, and never writes to the journal:
 * the collector does not know of it. A record that an agent sent twice is in the journal twice,
 * under one number; the first one counts. A start reads the headers of all frames from the oldest
 * segment on, to know what came before, and gives on what is behind the destination's last record.
 *
 * Segments that retention drops before they were followed are lost to the destination: `lost` says
 * that it happened. A start after a drop does not know what was in it: the hello of a worker, or a
 * record whose second copy comes then, is given again, with the same id. Files of
 * CREMA_COLLECTOR=dir: and what is still in an agent's spool are not followed. One thread.
 */
#ifndef CREMA_COLLECTOR_FOLLOW_FOLLOW_H
#define CREMA_COLLECTOR_FOLLOW_FOLLOW_H

#include <signal.h>

#include "collector/follow/destination.h"
#include "common/framefile.h"
#include "common/table.h"

struct follow {
	const char *dir; /* the data directory */
	struct destination *to;
	bool once;			   /* return at the end of what is there */
	const volatile sig_atomic_t *stop; /* not 0: return soon */
	uint64_t damaged;		   /* frames that do not read */
	bool lost; /* the segment of the destination's last record is gone */

	struct framefile_reader reader;
	uint64_t segment_ns; /* that is open; 0: none */
	struct table streams;
	struct arena arena;
	struct buf scratch, line;
	uint64_t settled_ns;
};

/* Until `stop`, or the end with `once`: 0 or -errno; what is wrong with the destination is in its
 * `why`, else errors are of the journal (-ENOENT: there is none; -ESTALE: the destination's last
 * record is of another journal). */
int follow_run(struct follow *f);
void follow_release(struct follow *f);

#endif
