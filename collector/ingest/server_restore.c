/* SPDX-License-Identifier: BSD-3-Clause */
/* server_restore.c - reads what earlier collectors wrote, and feeds the live numbers. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "collector/ingest/server_conn.h"
#include "collector/ingest/server_payload.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/pack.h"
#include "ids.h"

#define SECOND_NS UINT64_C(1000000000)
/* Progress of reading the journal is logged from then on, at growing intervals. */
#define QUIET_NS (2 * SECOND_NS)
#define MB 1000000u

int server_messages(struct server *server, const struct crema_frame_header *head,
		    const unsigned char *raw, const uint32_t **starts)
{
	struct buf *room = &server->starts;

	/* Each message takes at least two bytes: do not allocate for a huge count. */
	if (head->count > head->raw_bytes / 2 + 1)
		return -EBADMSG;
	buf_clear(room);
	if (buf_reserve(room, (size_t)(head->count + 1) * sizeof(**starts)))
		return -ENOMEM;
	*starts = (const uint32_t *)(const void *)room->data;
	return server_payload_check(raw, head->raw_bytes, head->count,
				    (uint32_t *)(void *)room->data);
}

void server_feed_live(struct server *server, const struct server_progress *progress,
		      const struct crema_frame_header *head, const unsigned char *raw,
		      const uint32_t *starts)
{
	struct live_frame frame = {
		.head = head, .raw = raw, .starts = starts, .from = progress->next};

	if (!server->config.live)
		return;
	if (progress->counted > frame.from)
		frame.from = progress->counted;
	if (head->first_seq > frame.from)
		frame.lost = head->first_seq - frame.from;
	if (live_data(server->config.live, &frame) && !server->live_failed) {
		server->live_failed = true;
		log_line("collect: out of memory: from now on the live numbers are too small; the "
			 "journal is complete");
	}
}

/* 0: map has the frame's payload. An error that is not about the frame is noted. */
static int open_map(struct server *server, const struct frame *frame, struct unpack *map)
{
	int err = unpack_frame(map, frame, &server->scratch);

	server->no_memory = server->no_memory || err == -ENOMEM;
	return err;
}

static void restore_hello(struct server *server, const struct frame *frame)
{
	struct unpack map;

	if (!server->config.live || open_map(server, frame, &map))
		return;
	if (live_hello(server->config.live, frame->head.worker, frame->head.stream, &map.root))
		server->no_memory = true;
	unpack_release(&map);
}

static void restore_live(struct server *server, const struct server_progress *progress,
			 const struct frame *frame)
{
	const unsigned char *raw;
	const uint32_t *starts;

	if (server->config.live && !frame_payload(frame, &server->scratch, &raw) &&
	    !server_messages(server, &frame->head, raw, &starts))
		server_feed_live(server, progress, &frame->head, raw, starts);
}

/* The last value of [from, to, ...]: the end of the stream. */
static uint64_t stream_end(const msgpack_object *edges)
{
	uint64_t end = 0;

	if (edges->type == MSGPACK_OBJECT_ARRAY && edges->via.array.size)
		object_u64(&edges->via.array.ptr[edges->via.array.size - 1], &end);
	return end;
}

static void restore_streams(struct server *server, const uint8_t *worker,
			    const msgpack_object *list)
{
	struct server_progress *progress;
	const msgpack_object *pair;
	uint64_t id;
	uint32_t i;

	for (i = 0; list && list->type == MSGPACK_OBJECT_ARRAY && i < list->via.array.size; i++) {
		pair = &list->via.array.ptr[i];
		if (pair->type != MSGPACK_OBJECT_ARRAY || pair->via.array.size < 2 ||
		    !object_u64(&pair->via.array.ptr[0], &id))
			continue;
		progress = server_streams_get(&server->streams, worker, id);
		if (progress)
			progress->next = progress->written = stream_end(&pair->via.array.ptr[1]);
		else
			server->no_memory = true;
	}
}

/* Restores the remains of dropped segments (model/dropped.h). */
static void restore_dropped(struct server *server, const struct frame *frame)
{
	const struct crema_frame_header *head = &frame->head;
	struct live *live = server->config.live;
	struct unpack map;

	if (open_map(server, frame, &map))
		return;
	if (head->type == CREMA_FRAME_DROPPED && live)
		live_take_sums(live, get(&map.root, "sums"));
	if (head->type == CREMA_FRAME_CARRY) {
		restore_streams(server, head->worker, get(&map.root, "streams"));
		if (live && live_take_ended(live, head->worker, get(&map.root, "ended")))
			server->no_memory = true;
	}
	unpack_release(&map);
}

static void restore_carried(struct server *server, const struct frame *frame)
{
	struct live_frame live = {.head = &frame->head};

	if (server->config.live && !frame_payload(frame, &server->scratch, &live.raw) &&
	    !server_messages(server, &frame->head, live.raw, &live.starts) &&
	    live_data(server->config.live, &live))
		server->no_memory = true;
}

static void restore_frame(struct server *server, const struct frame *frame)
{
	struct server_progress *progress;
	uint64_t end = frame->head.first_seq + frame->head.count;

	if (frame->head.type == CREMA_FRAME_DROPPED || frame->head.type == CREMA_FRAME_CARRY)
		restore_dropped(server, frame);
	if (frame->head.type == CREMA_FRAME_CARRIED)
		restore_carried(server, frame);
	if (frame->head.type == CREMA_FRAME_HELLO)
		restore_hello(server, frame);
	if (frame->head.type != CREMA_FRAME_DATA || end < frame->head.first_seq)
		return;
	progress = server_streams_get(&server->streams, frame->head.worker, frame->head.stream);
	if (!progress) {
		server->no_memory = true;
	} else if (end > progress->next) {
		restore_live(server, progress, frame);
		progress->next = progress->written = end;
	}
}

static void restore_warn(void *arg, const char *text)
{
	(void)arg;
	log_line("collect: journal: %s", text);
}

/* How much is read, and when to print that next. */
struct reading {
	struct server *server;
	const char *dir;
	uint64_t done_bytes, all_bytes, began_ns, next_ns;
};

static void read_frame(void *arg, const struct frame *frame)
{
	struct reading *r = arg;
	uint64_t took = clock_mono_ns() - r->began_ns;

	restore_frame(r->server, frame);
	r->done_bytes += sizeof(frame->head) + frame->head.stored_bytes;
	if (took < r->next_ns)
		return;
	r->next_ns = took * 2;
	log_line("collect: reading the journal in '%s': %" PRIu64 " of %" PRIu64
		 " MB after %" PRIu64 " s; the collector serves agents and the page after that",
		 r->dir, r->done_bytes / MB, r->all_bytes / MB, took / SECOND_NS);
}

int server_restore(struct server *server, const char *dir)
{
	struct reading reading = {.server = server, .dir = dir, .next_ns = QUIET_NS};
	struct server_checkpoint found;
	int err;

	if (server->config.live)
		live_restoring(server->config.live, true);
	err = server_take_checkpoint(server, dir, &found);
	reading.all_bytes = journal_bytes_from(dir, found.created_ns);
	reading.began_ns = clock_mono_ns();
	if (!err)
		err = journal_scan_from(dir, found.created_ns, read_frame, &reading, restore_warn);
	if (server->config.live)
		live_restoring(server->config.live, false);
	journal_heads(server->config.journal, server_checkpoint, server, found.bytes,
		      reading.all_bytes);
	return err ? err : server->no_memory ? -ENOMEM : 0;
}
