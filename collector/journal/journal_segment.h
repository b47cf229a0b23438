/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * journal_segment.h - the file that the journal writes at present. For the journal's thread.
 */
#ifndef CREMA_COLLECTOR_JOURNAL_JOURNAL_SEGMENT_H
#define CREMA_COLLECTOR_JOURNAL_JOURNAL_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/framefile.h"

struct journal_sync;

struct segment {
	struct framefile file; /* fd -1: none yet */
	uint64_t created_ns;   /* that its name begins with; of the newest that lies there */
	uint64_t empty_bytes;  /* its size before its first frame */
};

void segment_init(struct segment *segment, const char *dir);
/* Makes a new one in `dir`, hands it to `sync` and leaves the old one, which goes if it never took
 * a frame. 0 or -errno, and then the old one stays. */
int segment_begin(struct segment *segment, const char *dir, struct journal_sync *sync);
/* Of all segments that lie there: the bytes of the others, and when the oldest was created, 0:
 * none. */
void segment_list(const struct segment *segment, const char *dir, uint64_t *others_bytes,
		  uint64_t *oldest_ns);
/* No frame was ever written to it, or there is none. */
bool segment_is_empty(const struct segment *segment);
/* Somebody has removed it: what is written there would be gone with it. */
bool segment_is_removed(const struct segment *segment);

#endif
