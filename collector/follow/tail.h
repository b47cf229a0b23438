/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tail.h - reads the segments of one journal while its collector writes them, oldest first.
 *
 * It never writes to the folder, and the collector does not notice it. A segment with a successor
 * is complete: its rest is read once the successor was seen. A segment that retention removes while
 * it is open is still read to its end; one that was seen, and removed before it was opened, is
 * `lost`. One thread.
 */
#ifndef CREMA_COLLECTOR_FOLLOW_TAIL_H
#define CREMA_COLLECTOR_FOLLOW_TAIL_H

#include "common/framefile.h"

struct tail {
	char folder[PATH_MAX]; /* the journal's */
	struct framefile_reader reader;
	uint64_t segment_ns; /* creation of the open segment; 0: none */
	uint64_t done_ns;    /* of the latest that was opened */
	uint64_t next_ns;    /* of its successor, once seen; 0: none yet */
	bool lost;
	/* of segments read so far, without the open one */
	uint64_t bytes, bytes_skipped;
	bool newer; /* one was written by a later version */
};

/* Zeroed apart from this. dir: the data directory. 0 or -ENAMETOOLONG. */
int tail_init(struct tail *t, const char *dir);
void tail_close(struct tail *t);
/* The next frame: 1; 0: the end for now, try again later; -errno: of the folder, or of a segment,
 * with which the next call continues. */
int tail_next(struct tail *t, struct frame *frame);
/* Looks for the successor of a segment that takes long to read. */
void tail_look(struct tail *t);
/* Puts the path of the oldest segment created after `after_ns` into path; returns its time; 0:
 * there is none; -errno. */
int64_t tail_find(const struct tail *t, uint64_t after_ns, char path[PATH_MAX]);
/* Bytes read, and those that are not part of a frame, including the open segment. */
uint64_t tail_bytes(const struct tail *t);
uint64_t tail_skipped(const struct tail *t);
bool tail_newer(const struct tail *t);

#endif
