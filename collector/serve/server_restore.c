/* SPDX-License-Identifier: BSD-3-Clause */
/* server_restore.c - what earlier collectors wrote, and feeding the live numbers. */
#include <errno.h>

#include "collector/serve/server_conn.h"
#include "collector/serve/server_payload.h"
#include "common/log.h"
#include "common/pack.h"
#include "ids.h"

int server_messages(struct server *server, const struct crema_frame_header *head,
		    const unsigned char *raw, const uint32_t **starts)
{
	struct buf *room = &server->starts;

	/* Each message takes two bytes: a huge count is not worth any memory. */
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
	struct live_frame frame = {head, raw, starts, progress->next, 0};

	if (!server->config.live)
		return;
	if (head->first_seq > progress->next)
		frame.lost = head->first_seq - progress->next;
	if (live_data(server->config.live, &frame) && !server->live_failed) {
		server->live_failed = true;
		log_line("collect: out of memory: the live numbers are too small from now on; "
			 "the journal is complete");
	}
}

static void restore_hello(struct server *server, const struct frame *frame)
{
	const unsigned char *raw;
	struct unpack map;

	if (!server->config.live || frame_payload(frame, &server->scratch, &raw) ||
	    unpack_open(&map, raw, frame->head.raw_bytes))
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

static void restore_frame(void *arg, const struct frame *frame)
{
	struct server *server = arg;
	struct server_progress *progress;
	uint64_t end = frame->head.first_seq + frame->head.count;

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

int server_restore(struct server *server, const char *dir)
{
	int err;

	if (server->config.live)
		live_restoring(server->config.live, true);
	err = journal_scan(dir, restore_frame, server, restore_warn);
	if (server->config.live)
		live_restoring(server->config.live, false);
	return err ? err : server->no_memory ? -ENOMEM : 0;
}
