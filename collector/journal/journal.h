/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * journal.h - the collector's store: segments of frames, byte for byte as they came.
 *
 * Segments are framefiles of kind "journal". A new one begins at every start and when the present
 * one would grow beyond `segment_bytes`; older ones are never written again, whole or torn. In
 * each segment the HELLO of a worker stands before that worker's first frame.
 *
 * journal_add() only queues; journal_flush() writes what is queued in one go. Something may be
 * acknowledged once journal_written() has reached what journal_taken() was after it was added.
 * A segment may begin with a checkpoint (checkpoint.h) of what was added before: journal_heads()
 * says who makes it. It is asked for before the first frame of a segment, once four times as many
 * bytes as the last one took have come since, and left out where it would be larger than half a
 * segment.
 *
 * When writing fails (disk full ...) the journal is stuck: the queue is kept, nothing more is
 * taken, and every further journal_flush() tries again. So nothing is lost and memory stays
 * bounded. After an error other than one of room a try that fails also tries a new segment: the
 * folder may have got another disk. A segment that was removed is noticed before the next frames.
 *
 * With a loop, and where the kernel allows io_uring, writing goes on while the loop does, one write
 * at a time, and what is added meanwhile makes the next; when that is large, adding waits. What it
 * did not write whole is written again the plain way at once, which also tells the reason; so do
 * all tries while it is stuck.
 *
 * fdatasync each second: by io_uring too, else in a thread of its own, as it would stall
 * everything. Once one has failed the journal is stuck until a new segment has been synced. All
 * functions are for one thread, that of the loop.
 */
#ifndef CREMA_COLLECTOR_JOURNAL_JOURNAL_H
#define CREMA_COLLECTOR_JOURNAL_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/framefile.h"

#define JOURNAL_SEGMENT_BYTES (64u << 20)
#define JOURNAL_QUEUE_BYTES (1u << 20) /* queued bytes from which on adding writes */
#define JOURNAL_SYNC_MS 1000

struct journal;
struct loop;

struct journal_config {
	struct loop *loop;	/* outlives the journal; NULL: without io_uring */
	const char *dir;	/* must exist; holds the segments */
	uint64_t segment_bytes; /* 0: JOURNAL_SEGMENT_BYTES */
	int64_t sync_ms;	/* 0: JOURNAL_SYNC_MS */
	/* For tests, and then the loop does neither; NULL: framefile_append and fdatasync. */
	int (*append)(struct framefile *file, const void *frames, size_t bytes);
	int (*sync)(int fd);
};

/* The HELLO frame that must precede a worker's frames. `segment` is the journal's note: set to 0
 * whenever the bytes change. */
struct journal_hello {
	const void *frame;
	size_t bytes;
	uint64_t segment;
};

struct journal_stats {
	uint64_t segments; /* begun since the start */
	uint64_t frames;   /* written, notes and hellos included */
	uint64_t bytes;	   /* written */
	uint64_t queued_bytes;
	bool ring; /* written and synced by io_uring */
	/* All segments, earlier collectors' too, and when the oldest was created, 0: none; as of
	 * the last look at the directory and by what was written since. */
	uint64_t size_bytes, oldest_ns;
	uint64_t failures; /* times that writing started to fail */
	uint64_t syncs;
	uint64_t slowest_sync_ns;
	int error;	/* -errno while stuck, else 0 */
	int sync_error; /* of the latest fdatasync */
	/* Written before a fdatasync that failed and not synced by an earlier one. */
	uint64_t unsynced_bytes;
};

/* NULL with *error = -errno. */
struct journal *journal_open(const struct journal_config *config, int *error);
/* Writes what is queued (one try), syncs. Returns the last error. */
int journal_close(struct journal *journal);

/* One whole frame. 0; -EAGAIN: stuck, and nothing was taken; -ENOMEM likewise. hello may be NULL.
 */
int journal_add(struct journal *journal, struct journal_hello *hello, const void *frame,
		size_t bytes);
/* A NOTE frame of the collector's own. Returns as journal_add(). */
int journal_note(struct journal *journal, const char *event, const char *text);
/* 0 when nothing is queued any more; -EINPROGRESS: it writes; else -errno. */
int journal_flush(struct journal *journal);
/* Appends whole frames to `out`: their number or -errno. It may not add anything to the journal. */
typedef int (*journal_head)(void *arg, struct buf *out);
/* fn NULL: segments have no head. last_bytes, since_bytes: the size of the last one, and what came
 * since. */
void journal_heads(struct journal *journal, journal_head fn, void *arg, uint64_t last_bytes,
		   uint64_t since_bytes);
/* Bytes ever queued, and how many of these are in the files. */
uint64_t journal_taken(const struct journal *journal);
uint64_t journal_written(const struct journal *journal);
bool journal_is_stuck(const struct journal *journal);
void journal_get_stats(struct journal *journal, struct journal_stats *stats);

/* Lists the directory again: after segments were removed. */
void journal_look(struct journal *journal);

/* Starts a new segment for subsequent frames, unless the current one is empty. */
void journal_next_segment(struct journal *journal);
/* When the present segment was created: the number that its name begins with. */
uint64_t journal_segment_ns(const struct journal *journal);

/*
 * Gives every valid frame of the segment created at from_ns and later ones, oldest segment first;
 * `warn` gets one text for each damaged segment (may be NULL). 0: of all segments, after what is
 * left of dropped runs (model/dropped.h). Segments that it says are gone are left out. 0 or -errno
 * of the directory; unreadable segments are skipped.
 */
int journal_scan_from(const char *dir, uint64_t from_ns,
		      void (*visit)(void *arg, const struct frame *frame), void *arg,
		      void (*warn)(void *arg, const char *text));
/* The bytes of these. */
uint64_t journal_bytes_from(const char *dir, uint64_t from_ns);
/*
 * The newest segment that try() takes, then the file of dropped runs with the time from which on
 * segments are left: it returns 1 for the next older one. What it returned else; 1: there is none;
 * or -errno of the directory. Segments that are gone are left out.
 */
int journal_find(const char *dir, int (*try)(void *arg, const char *path, uint64_t created_ns),
		 void *arg);

#endif
