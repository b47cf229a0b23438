/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * journal_segment.h - the file that the journal currently writes. For the journal's thread.
 */
#ifndef CREMA_COLLECTOR_JOURNAL_JOURNAL_SEGMENT_H
#define CREMA_COLLECTOR_JOURNAL_JOURNAL_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/framefile.h"

struct journal_sync;

struct segment {
	struct framefile file; /* fd -1: none yet */
	uint64_t created_ns;   /* from the start of its name; and of the newest in the directory */
	uint64_t empty_bytes;  /* its size before its first frame */
};

void segment_init(struct segment *segment, const char *dir);
/* Creates a new one in `dir`, passes it to `sync` and leaves the old one, which is removed if it
 * never got a frame. 0 or -errno, in which case the old one stays. */
int segment_begin(struct segment *segment, const char *dir, struct journal_sync *sync);
/* For all segments in the directory: the size of the others, and the creation time of the oldest
 * (0: none). */
void segment_list(const struct segment *segment, const char *dir, uint64_t *others_bytes,
		  uint64_t *oldest_ns);
/* No frame was written to it, or there is none. */
bool segment_is_empty(const struct segment *segment);
/* It was removed: what is written to it would be lost. */
bool segment_is_removed(const struct segment *segment);

#endif
