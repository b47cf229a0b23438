/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * journal.h - the collector's store: segments of frames, byte for byte as received.
 *
 * Segments are framefiles of kind "journal". A new one begins at every start, and when the current
 * one would exceed `segment_bytes`; older ones, complete or truncated, are never written again. In
 * each segment the HELLO of a worker precedes that worker's first frame.
 *
 * journal_add() only queues; journal_flush() writes the queue at once. A record may be acknowledged
 * once journal_written() has reached the value that journal_taken() had after it was added.
 * A segment may begin with a checkpoint (checkpoint.h) of all earlier frames: journal_heads() sets
 * the function that makes it. The journal calls it before the first frame of a segment, once four
 * times the last checkpoint's size has been added since, and omits a checkpoint that would be
 * larger than half a segment.
 *
 * If writing fails (disk full ...) the journal is stuck: it keeps the queue, accepts no more
 * frames, and retries in every journal_flush(). So nothing is lost and memory stays bounded. After
 * an error that free space would not fix, a failed try also opens a new segment: another disk may
 * be mounted at the folder. A removed segment is detected before the next frames.
 *
 * With a loop, and if the kernel allows io_uring, the loop continues while a write is in progress.
 * There is one write at a time; frames added meanwhile form the next one, and adding waits when it
 * is large. A short write is repeated at once by pwrite, which also returns the reason; while
 * the journal is stuck, all tries use pwrite.
 *
 * fdatasync runs each second: by io_uring, otherwise in a separate thread, because it would stall
 * the loop. After a failure the journal is stuck until a new segment has been synced. All functions
 * are for one thread, that of the loop.
 */
#ifndef CREMA_COLLECTOR_JOURNAL_JOURNAL_H
#define CREMA_COLLECTOR_JOURNAL_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/framefile.h"

#define JOURNAL_SEGMENT_BYTES (64u << 20)
#define JOURNAL_QUEUE_BYTES (1u << 20) /* adding writes once this many bytes are queued */
#define JOURNAL_SYNC_MS 1000

struct journal;
struct loop;

struct journal_config {
	struct loop *loop;	/* outlives the journal; NULL: without io_uring */
	const char *dir;	/* must exist; holds the segments */
	uint64_t segment_bytes; /* 0: JOURNAL_SEGMENT_BYTES */
	int64_t sync_ms;	/* 0: JOURNAL_SYNC_MS */
	/* For tests, which replace the loop's writes; NULL: framefile_append and fdatasync. */
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
	uint64_t frames;   /* written, including notes and hellos */
	uint64_t bytes;	   /* written */
	uint64_t queued_bytes;
	bool ring; /* written and synced by io_uring */
	/* Of all segments, including earlier collectors': size, and creation of the oldest (0:
	 * none). From the last listing of the directory, plus what was written since. */
	uint64_t size_bytes, oldest_ns;
	uint64_t failures; /* how often writing started to fail */
	uint64_t syncs;
	uint64_t slowest_sync_ns;
	int error;	/* -errno while stuck, else 0 */
	int sync_error; /* of the latest fdatasync */
	/* Written before a failed fdatasync and not synced by an earlier one. */
	uint64_t unsynced_bytes;
};

/* NULL with *error = -errno. */
struct journal *journal_open(const struct journal_config *config, int *error);
/* Writes the queue (one try) and syncs. Returns the last error. */
int journal_close(struct journal *journal);

/* Queues one whole frame. 0; -EAGAIN if stuck, or -ENOMEM: nothing was queued. hello may be NULL.
 */
int journal_add(struct journal *journal, struct journal_hello *hello, const void *frame,
		size_t bytes);
/* Queues a NOTE frame of the collector. Returns as journal_add(). */
int journal_note(struct journal *journal, const char *event, const char *text);
/* 0 if the queue is empty; -EINPROGRESS: a write is in progress; else -errno. */
int journal_flush(struct journal *journal);
/* Appends whole frames to `out`: their number or -errno. Must not add to the journal. */
typedef int (*journal_head)(void *arg, struct buf *out);
/* fn NULL: segments have no head. last_bytes: size of the last head; since_bytes: added since. */
void journal_heads(struct journal *journal, journal_head fn, void *arg, uint64_t last_bytes,
		   uint64_t since_bytes);
/* Bytes ever queued, and how many of these are in files. */
uint64_t journal_taken(const struct journal *journal);
uint64_t journal_written(const struct journal *journal);
bool journal_is_stuck(const struct journal *journal);
void journal_get_stats(struct journal *journal, struct journal_stats *stats);

/* Lists the directory again, after segments were removed. */
void journal_look(struct journal *journal);

/* Starts a new segment for subsequent frames, unless the current one is empty. */
void journal_next_segment(struct journal *journal);
/* The creation time of the current segment: the number at the start of its name. */
uint64_t journal_segment_ns(const struct journal *journal);

/*
 * Passes on every valid frame of the segment created at from_ns and later ones, oldest segment
 * first. `warn` (may be NULL) gets one text for each damaged segment. from_ns 0: all segments,
 * after the remains of dropped runs (model/dropped.h). Segments that are recorded there as gone are
 * left out. 0 or -errno of the directory; unreadable segments are skipped.
 */
int journal_scan_from(const char *dir, uint64_t from_ns,
		      void (*visit)(void *arg, const struct frame *frame), void *arg,
		      void (*warn)(void *arg, const char *text));
/* The size of these segments. */
uint64_t journal_bytes_from(const char *dir, uint64_t from_ns);
/*
 * Calls try() for segments, newest first, then for the file of dropped runs with the time from
 * which on segments remain, as long as it returns 1. Returns its other result; 1: none was taken;
 * or -errno of the directory. Segments that are gone are left out.
 */
int journal_find(const char *dir, int (*try)(void *arg, const char *path, uint64_t created_ns),
		 void *arg);

#endif
