/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch_parts.h - shared by the files of this folder, and included only by them.
 *
 * watch_feed.c: one frame; watch_dropped.c: the remains of dropped runs; watch.c: which journal is
 * read when; watch_out.c: what is reported about the journals.
 */
#ifndef CREMA_COLLECTOR_WATCH_WATCH_PARTS_H
#define CREMA_COLLECTOR_WATCH_WATCH_PARTS_H

#include <sys/types.h>
#include <time.h>

#include "collector/follow/tail.h"
#include "collector/watch/watch.h"
#include "common/table.h"

struct watch_worker {
	uint8_t id[CREMA_WORKER_ID_BYTES];
	uint64_t missing; /* numbers below its streams' last ones that were not read, also those of
			     gaps beyond WATCH_RANGES */
};

struct watch_stream {
	struct watch_worker *of;
	uint64_t stream;
	struct ranges records; /* those that were read, in any journal */
	struct live_fields fields;
};

struct watch_journal {
	const char *dir;
	struct tail tail;
	int error;	   /* -errno of the latest try */
	bool read;	   /* to its end, at least once */
	bool at_end;	   /* in this turn */
	uint64_t moved_ns; /* when it last had a new record; 0: never */
	uint64_t damaged;  /* frames */
	uint64_t size_bytes;
	/* the file of dropped runs */
	uint64_t runs_dropped, missed; /* before they were read: runs, and later on records */
	ino_t dropped_file;
	struct timespec dropped_time;
};

struct watch {
	struct live *live;
	struct loop_timer *timer;
	struct watch_journal *journals;
	size_t n;
	struct table streams, workers; /* of struct watch_stream, watch_worker */
	struct arena arena;
	uint64_t seed[2];
	uint64_t held[WATCH_HOLD]; /* lost at the latest ticks at which all journals were read */
	unsigned int ticks;
	bool left_out; /* workers */
	bool no_memory, reported;
	struct buf scratch, starts;
};

/* Feeds a frame of that journal. */
void watch_feed(struct watch *w, struct watch_journal *j, const struct frame *frame);
/* A stream's numbers [from, to) were dropped: how many of them no journal had. */
uint64_t watch_add(struct watch *w, const uint8_t *worker, uint64_t stream, uint64_t from,
		   uint64_t to);
/* Unpacks a frame's map: 0, or an error, which is noted. */
int watch_open(struct watch *w, struct watch_journal *j, const struct frame *frame,
	       struct unpack *map);
/* Feeds a frame of totals, from the file of dropped runs. */
void watch_feed_carried(struct watch *w, struct watch_journal *j, const struct frame *frame);
/* Reads that file if it has changed. */
void watch_dropped(struct watch *w, struct watch_journal *j);

#endif
