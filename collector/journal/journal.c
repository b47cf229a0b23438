/* SPDX-License-Identifier: BSD-3-Clause */
/* journal.c - writes the journal: queue, segments, being stuck and recovering. */
#include "collector/journal/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "collector/journal/journal_segment.h"
#include "collector/journal/journal_sync.h"
#include "collector/loop/loop.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/pack.h"
#include "ids.h"

#define HEAD_TIMES 4u /* how many sizes of a head must be written between two */

struct journal {
	struct journal_config config;
	char dir[PATH_MAX];
	struct segment segment; /* the current one */
	struct journal_sync *sync;
	struct buf queue, batch; /* the batch is written before the queue */
	uint64_t queued_frames, batch_frames;
	uint64_t taken;
	struct loop_file *ring;		 /* NULL: the caller waits for writes */
	bool writing;			 /* the ring is writing the batch */
	uint64_t started_ns;		 /* the stream of the collector's notes */
	uint64_t older_bytes, oldest_ns; /* of the segments before the current one */
	bool next_wanted;
	journal_head head;
	void *head_arg;
	uint64_t head_bytes, since_head_bytes; /* of the last head; added since then */
	bool disk_failed;		       /* at the last check */
	struct journal_stats stats;
};

static int begin_segment(struct journal *journal)
{
	uint64_t left_bytes = segment_is_empty(&journal->segment) ? 0 : journal->segment.file.size;
	int err = segment_begin(&journal->segment, journal->dir, journal->sync);

	if (err)
		return err;
	journal->older_bytes += left_bytes;
	if (!journal->oldest_ns)
		journal->oldest_ns = journal->segment.created_ns;
	journal->next_wanted = false;
	journal->stats.segments++;
	return 0;
}

static void on_written(void *arg, int result);

/* Uses the loop's ring, unless a test replaces it. */
static void use_ring(struct journal *journal)
{
	if (journal->config.loop && !journal->config.append && !journal->config.sync)
		journal->ring = loop_file_new(journal->config.loop, on_written, journal);
}

struct journal *journal_open(const struct journal_config *config, int *error)
{
	struct journal *journal = calloc(1, sizeof(*journal));
	struct rlimit limit;

	*error = -ENOMEM;
	if (!journal)
		return NULL;
	journal->config = *config;
	segment_init(&journal->segment, config->dir);
	journal->started_ns = clock_real_ns();
	use_ring(journal);
	if (!journal->config.segment_bytes)
		journal->config.segment_bytes = JOURNAL_SEGMENT_BYTES;
	/* Beyond 'ulimit -f' all writes fail: the next segment begins before that. */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < journal->config.segment_bytes)
		journal->config.segment_bytes = limit.rlim_cur;
	if (!journal->config.sync_ms)
		journal->config.sync_ms = JOURNAL_SYNC_MS;
	if (!journal->config.append)
		journal->config.append = framefile_append;
	if (!journal->config.sync)
		journal->config.sync = fdatasync;
	*error = -ENAMETOOLONG;
	if (strlen(config->dir) >= sizeof(journal->dir))
		goto out;
	strcpy(journal->dir, config->dir);
	journal->sync =
		journal_sync_start(journal->ring ? journal->config.loop : NULL, journal->dir,
				   journal->config.sync_ms, journal->config.sync);
	if (!journal->sync) {
		*error = -errno;
		goto out;
	}
	journal_look(journal);
	*error = begin_segment(journal);
	if (!*error)
		return journal;
	journal_sync_stop(journal->sync);
out:
	loop_file_free(journal->ring);
	free(journal);
	return NULL;
}

bool journal_is_stuck(const struct journal *journal)
{
	return journal->stats.error != 0;
}

static int set_state(struct journal *journal, int err)
{
	if (err && !journal->stats.error) {
		journal->stats.failures++;
		log_line("collect: cannot write the journal in '%s': %s; agents wait until it "
			 "works again",
			 journal->dir, log_error(err));
	} else if (!err && journal->stats.error) {
		log_line("collect: the journal in '%s' can be written again", journal->dir);
	}
	journal->stats.error = err;
	return err;
}

uint64_t journal_taken(const struct journal *journal)
{
	return journal->taken;
}

uint64_t journal_written(const struct journal *journal)
{
	return journal->taken - journal->batch.len - journal->queue.len;
}

static void make_batch(struct journal *journal)
{
	struct buf empty = journal->batch;

	journal->batch = journal->queue;
	journal->batch_frames = journal->queued_frames;
	journal->queue = empty;
	journal->queued_frames = 0;
}

static void batch_is_written(struct journal *journal)
{
	journal->stats.frames += journal->batch_frames;
	journal->stats.bytes += journal->batch.len;
	/* A checkpoint of many workers is large, but rare. */
	if (journal->batch.cap > 2 * JOURNAL_QUEUE_BYTES)
		buf_release(&journal->batch);
	else
		buf_clear(&journal->batch);
	journal_sync_dirty(journal->sync, journal->stats.bytes);
}

static int write_batch(struct journal *journal)
{
	int err = journal->config.append(&journal->segment.file, journal->batch.data,
					 journal->batch.len);

	if (!err)
		batch_is_written(journal);
	return err;
}

/* Errors after which this file may accept more, once there is space. */
static bool wants_room(int err)
{
	return err == -ENOSPC || err == -EDQUOT || err == -EFBIG;
}

/*
 * Retries a failed write. A disk that has become read-only after an error, or a stale file of a
 * server, never accepts another byte; but a new disk may be mounted at the folder's path by now.
 * The whole batch is written there: the part of it in the old file is a duplicate.
 */
static int write_again(struct journal *journal)
{
	int err = write_batch(journal);

	if (!err || wants_room(err) || begin_segment(journal))
		return err;
	return write_batch(journal);
}

static void on_written(void *arg, int result)
{
	struct journal *journal = arg;
	size_t bytes = journal->batch.len;
	int err = 0;

	journal->writing = false;
	if (result >= 0 && (size_t)result == bytes) {
		journal->segment.file.size += bytes;
		batch_is_written(journal);
		return;
	}
	if (result > 0 && ftruncate(journal->segment.file.fd, (off_t)journal->segment.file.size))
		err = -errno;
	set_state(journal, err ? err : write_batch(journal));
}

/* 0, or the error of a sync that lost the last writes: only a new segment shows when the disk
 * works again. */
static int ask_disk(struct journal *journal)
{
	uint64_t unsynced_bytes;
	bool wants_file;
	int err = journal_sync_failed(journal->sync, &wants_file, &unsynced_bytes);

	if (err && !journal->disk_failed) {
		journal->stats.unsynced_bytes += unsynced_bytes;
		log_line("collect: the disk of '%s' lost the latest writes: %s; up to "
			 "%" PRIu64 " acknowledged bytes may be lost",
			 journal->dir, log_error(err), unsynced_bytes);
	}
	journal->disk_failed = err != 0;
	if (err && wants_file)
		begin_segment(journal);
	return err;
}

int journal_flush(struct journal *journal)
{
	int err;

	if (journal->writing)
		return -EINPROGRESS;
	err = ask_disk(journal);
	if (err)
		return set_state(journal, err);
	if (journal->stats.error && !journal->batch.len && !journal->queue.len)
		/* A segment could not be created: this is the retry that journal_add() waits
		 * for. */
		return set_state(journal, begin_segment(journal));
	if (!journal->batch.len)
		make_batch(journal);
	if (!journal->batch.len)
		return 0;
	if (journal->ring && !journal->stats.error) {
		journal->writing = true;
		loop_file_write(journal->ring, journal->segment.file.fd, journal->batch.data,
				journal->batch.len, journal->segment.file.size);
		return -EINPROGRESS;
	}
	err = journal->stats.error ? write_again(journal) : write_batch(journal);
	if (!err && journal->queue.len) {
		make_batch(journal);
		err = write_batch(journal);
	}
	return set_state(journal, err);
}

/* Writes while the caller waits. */
static int flush_now(struct journal *journal)
{
	int err;

	while ((err = journal_flush(journal)) == -EINPROGRESS) {
		err = loop_file_wait(journal->ring);
		if (err)
			break;
	}
	return err;
}

/* Makes sure that the current segment has room for `bytes` more. */
static int make_room(struct journal *journal, size_t bytes)
{
	int err;

	if (!journal->next_wanted &&
	    journal->segment.file.size + journal->batch.len + journal->queue.len + bytes <=
		    journal->config.segment_bytes)
		return 0;
	err = flush_now(journal);
	if (!err)
		err = set_state(journal, begin_segment(journal));
	return err;
}

static int begin_anew(struct journal *journal)
{
	int err;

	log_line("collect: '%s' was removed: its records are lost", journal->segment.file.path);
	err = begin_segment(journal);
	if (!err)
		journal_look(journal);
	return set_state(journal, err);
}

/* Before the first frame of a segment. Everything added until now is in earlier ones. */
static void add_head(struct journal *journal, size_t more)
{
	struct buf head = BUF_INIT;
	int frames;

	if (!journal->head || journal->batch.len || journal->queue.len ||
	    !segment_is_empty(&journal->segment) ||
	    journal->since_head_bytes < HEAD_TIMES * journal->head_bytes)
		return;
	frames = journal->head(journal->head_arg, &head);
	if (frames > 0 && !head.error) {
		journal->head_bytes = head.len;
		journal->since_head_bytes = 0;
		if (head.len <= journal->config.segment_bytes / 2 &&
		    journal->segment.file.size + head.len + more <= journal->config.segment_bytes &&
		    !buf_add(&journal->queue, head.data, head.len)) {
			journal->queued_frames += (uint64_t)frames;
			journal->taken += head.len;
		}
		journal->queue.error = 0;
	}
	buf_release(&head);
}

void journal_heads(struct journal *journal, journal_head fn, void *arg, uint64_t last_bytes,
		   uint64_t since_bytes)
{
	journal->head = fn;
	journal->head_arg = arg;
	journal->head_bytes = last_bytes;
	journal->since_head_bytes = since_bytes;
}

int journal_add(struct journal *journal, struct journal_hello *hello, const void *frame,
		size_t bytes)
{
	size_t hello_bytes = 0;

	if (journal->stats.error)
		return -EAGAIN;
	if (journal->queue.len >= JOURNAL_QUEUE_BYTES && journal_flush(journal) == -EINPROGRESS &&
	    journal->queue.len) {
		/* The previous write is still in progress. */
		if (loop_file_wait(journal->ring))
			return -ENOMEM;
		journal_flush(journal);
	}
	if (journal->stats.error)
		return -EAGAIN;
	if (!journal->batch.len && !journal->queue.len && segment_is_removed(&journal->segment) &&
	    begin_anew(journal))
		return -EAGAIN;
	if (make_room(journal, bytes + (hello ? hello->bytes : 0)))
		return -EAGAIN;
	add_head(journal, bytes + (hello ? hello->bytes : 0));
	if (hello && hello->segment != journal->stats.segments)
		hello_bytes = hello->bytes;
	if (buf_reserve(&journal->queue, hello_bytes + bytes)) {
		journal->queue.error = 0; /* what was queued before is complete */
		return -ENOMEM;
	}
	if (hello_bytes) {
		buf_add(&journal->queue, hello->frame, hello_bytes);
		journal->queued_frames++;
		hello->segment = journal->stats.segments;
	}
	buf_add(&journal->queue, frame, bytes);
	journal->queued_frames++;
	journal->taken += hello_bytes + bytes;
	journal->since_head_bytes += hello_bytes + bytes;
	return 0;
}

void journal_next_segment(struct journal *journal)
{
	journal->next_wanted =
		journal->segment.file.size + journal->batch.len + journal->queue.len >
		journal->segment.empty_bytes;
}

uint64_t journal_segment_ns(const struct journal *journal)
{
	return journal->segment.created_ns;
}

int journal_note(struct journal *journal, const char *event, const char *text)
{
	struct crema_frame_header head = frame_head(CREMA_FRAME_NOTE, NULL, journal->started_ns);
	struct buf frame = BUF_INIT;
	struct packed_map note;
	msgpack_packer *pk = packed_map_begin(&note);
	int err;

	pack_kv_u64(pk, "time_ns", clock_real_ns());
	pack_kv_text(pk, "event", event);
	pack_kv_text(pk, "text", text);
	err = frame_encode_buf(&frame, &head, packed_map_end(&note));
	if (!err)
		err = journal_add(journal, NULL, frame.data, frame.len);
	buf_release(&frame);
	return err;
}

void journal_look(struct journal *journal)
{
	segment_list(&journal->segment, journal->dir, &journal->older_bytes, &journal->oldest_ns);
}

void journal_get_stats(struct journal *journal, struct journal_stats *stats)
{
	*stats = journal->stats;
	stats->ring = journal->ring != NULL;
	stats->size_bytes = journal->older_bytes + journal->segment.file.size;
	stats->oldest_ns = journal->oldest_ns;
	stats->queued_bytes = journal->batch.len + journal->queue.len;
	journal_sync_stats(journal->sync, &stats->syncs, &stats->slowest_sync_ns,
			   &stats->sync_error);
}

int journal_close(struct journal *journal)
{
	int err, sync_err;

	if (!journal)
		return 0;
	err = flush_now(journal);
	if (journal->writing)
		return err; /* the kernel may still read the batch, so it is not freed */
	loop_file_free(journal->ring);
	framefile_close(&journal->segment.file);
	sync_err = journal_sync_stop(journal->sync);
	buf_release(&journal->queue);
	buf_release(&journal->batch);
	free(journal);
	return err ? err : sync_err;
}
