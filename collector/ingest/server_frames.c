/* SPDX-License-Identifier: BSD-3-Clause */
/* server_frames.c - handles the agents' frames, and responds. */
#include "collector/ingest/server_conn.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/pack.h"
#include "ids.h"

#define HELLO_NAMES_MAX 4096u

/* Sealed once the agent has proved the token: it could not open it before. */
static int frame_out(struct server_conn *conn, const struct buf *frame, struct buf *sealed)
{
	int err;

	if (!conn->proved)
		return secure_send(&conn->stream, frame->data, frame->len);
	buf_clear(sealed);
	err = seal_put(&conn->seal_out, sealed, frame->data, frame->len);
	return err ? err : secure_send(&conn->stream, sealed->data, sealed->len);
}

/* Always -1. */
static int not_sent(struct server_conn *conn, int err)
{
	if (conn->state == CONN_ENDING)
		return -1;
	return server_conn_drop(conn, err == -ENOBUFS ? SERVER_not_reading : SERVER_no_memory,
				NULL);
}

int server_send_frame(struct server_conn *conn, const struct buf *frame)
{
	int err = frame_out(conn, frame, &conn->server->sealed);

	return err ? not_sent(conn, err) : 0;
}

int server_send(struct server_conn *conn, uint8_t type, uint64_t seq, struct packed_map *map)
{
	struct crema_frame_header head = frame_head(type, conn->worker, conn->stream_id);
	struct buf *out = &conn->server->out;
	int err;

	head.first_seq = seq;
	buf_clear(out);
	err = map ? frame_encode_buf(out, &head, packed_map_end(map))
		  : frame_encode(out, &head, NULL, 0);
	return err ? not_sent(conn, err) : server_send_frame(conn, out);
}

int server_send_refuse(struct server_conn *conn, const char *reason)
{
	struct packed_map map;

	pack_kv_text(packed_map_begin(&map), "reason", reason);
	return server_send(conn, CREMA_FRAME_REFUSE, 0, &map);
}

int server_send_ack(struct server_conn *conn)
{
	return server_send(conn, CREMA_FRAME_ACK, conn->progress->written, NULL);
}

static int send_welcome(struct server_conn *conn)
{
	struct packed_map map;
	msgpack_packer *pk = packed_map_begin(&map);

	pack_kv_u64(pk, "version", conn->version);
	pack_kv_text(pk, "name", conn->server->config.name);
	/* Not `next`: queued records could still be lost, so the agent may send them again. */
	return server_send(conn, CREMA_FRAME_WELCOME, conn->progress->written, &map);
}

int server_open_map(struct server_conn *conn, const struct frame *frame, struct unpack *map)
{
	int err = unpack_frame(map, frame, &conn->server->scratch);

	if (!err && map->root.type != MSGPACK_OBJECT_MAP) {
		unpack_release(map);
		err = -EBADMSG;
	}
	if (err)
		return server_conn_drop(
			conn, err == -ENOMEM ? SERVER_no_memory : SERVER_bad_payload, NULL);
	return 0;
}

/* Assigns the connection to this stream. 0 or -ENOMEM. */
static int take_stream(struct server_conn *conn, uint64_t stream)
{
	struct server_streams *streams = &conn->server->streams;
	struct server_progress *progress = server_streams_get(streams, conn->worker, stream);

	if (!progress)
		return -ENOMEM;
	server_streams_use(progress);
	if (conn->progress)
		server_streams_leave(streams, conn->progress);
	conn->progress = progress;
	return 0;
}

/* Also later on an open connection: newer facts, or another stream of the same worker. */
static int on_hello(struct server_conn *conn, const struct frame *frame, const uint8_t *p,
		    size_t bytes)
{
	const msgpack_object *names, *facts;
	bool sane, first = conn->state == CONN_HELLO;
	struct unpack map;

	if (memcmp(conn->worker, frame->head.worker, sizeof(conn->worker)) != 0)
		return server_conn_drop(conn, SERVER_bad_order, "a hello of another worker");
	if (server_streams_full(&conn->server->streams, conn->worker, frame->head.stream))
		return server_conn_drop(conn, SERVER_too_many_streams, NULL);
	if (live_full(conn->server->config.live, conn->worker))
		return server_conn_drop(conn, SERVER_too_many_workers, NULL);
	if (server_open_map(conn, frame, &map))
		return -1;
	names = get(&map.root, "task_fields");
	facts = get(&map.root, "facts");
	sane = names && names->type == MSGPACK_OBJECT_ARRAY &&
	       names->via.array.size <= HELLO_NAMES_MAX &&
	       (is_nil(facts) || facts->type == MSGPACK_OBJECT_MAP);
	conn->pid = get_u64(facts, "pid", 0);
	if (conn->server->config.redacted_only && !get_true(facts, "redacted")) {
		unpack_release(&map);
		return server_conn_drop(conn, SERVER_bad_names, NULL);
	}
	text_copy(conn->host, sizeof(conn->host), get_text(facts, "host"));
	if (sane && conn->server->config.live &&
	    live_hello(conn->server->config.live, conn->worker, frame->head.stream, &map.root)) {
		unpack_release(&map);
		return server_conn_drop(conn, SERVER_no_memory, NULL);
	}
	unpack_release(&map);
	if (!sane)
		return server_conn_drop(conn, SERVER_bad_payload, "a hello without its lists");
	if (take_stream(conn, frame->head.stream))
		return server_conn_drop(conn, SERVER_no_memory, NULL);
	buf_clear(&conn->hello);
	if (buf_add(&conn->hello, p, bytes))
		return server_conn_drop(conn, SERVER_no_memory, NULL);
	conn->journal_hello = (struct journal_hello){conn->hello.data, conn->hello.len, 0};
	conn->stream_id = frame->head.stream;
	if (first) {
		conn->server->stats.connected++;
		if (conn->server->config.live)
			live_connection(conn->server->config.live, conn->worker, 1);
	}
	conn->state = CONN_OPEN;
	conn->deadline_ms = 0;
	return first && server_calibration_send(conn) ? -1 : send_welcome(conn);
}

static int on_data(struct server_conn *conn, const struct frame *frame, const uint8_t *p,
		   size_t bytes)
{
	const struct crema_frame_header *head = &frame->head;
	struct server_progress *progress = conn->progress;
	struct server_stats *stats = &conn->server->stats;
	uint64_t end = head->first_seq + head->count;
	const unsigned char *raw;
	const uint32_t *starts;
	int err;

	if (memcmp(conn->worker, head->worker, sizeof(conn->worker)) != 0 ||
	    conn->stream_id != head->stream || end < head->first_seq)
		return server_conn_drop(conn, SERVER_bad_order, "data of another stream");
	if (end <= progress->next) {
		stats->duplicate_records += head->count;
		server_acks_want(conn);
		return 0;
	}
	if (journal_is_stuck(conn->server->config.journal))
		return -EAGAIN;
	conn->spent += head->raw_bytes;
	conn->server->round_bytes += head->raw_bytes;
	err = frame_payload(frame, &conn->server->scratch, &raw);
	if (!err)
		err = server_messages(conn->server, head, raw, &starts);
	if (err == -EBADMSG)
		return server_conn_drop(conn, SERVER_bad_payload, NULL);
	if (!err)
		err = journal_add(conn->server->config.journal, &conn->journal_hello, p, bytes);
	if (err == -EAGAIN)
		return err;
	if (err)
		return server_conn_drop(conn, SERVER_no_memory, NULL);
	server_feed_live(conn->server, progress, head, raw, starts);
	if (head->first_seq > progress->next)
		stats->missing_records += head->first_seq - progress->next;
	else
		stats->duplicate_records += progress->next - head->first_seq;
	stats->frames++;
	stats->bytes += bytes;
	stats->records +=
		end - (head->first_seq > progress->next ? head->first_seq : progress->next);
	conn->records += head->count;
	conn->bytes += bytes;
	server_acks_advance(conn->server, progress, end);
	server_acks_want(conn);
	return 0;
}

static int on_clock(struct server_conn *conn, const struct frame *frame)
{
	uint64_t t1 = clock_real_ns(), t0;
	struct packed_map answer;
	msgpack_packer *pk;
	struct unpack map;

	if (server_open_map(conn, frame, &map))
		return -1;
	t0 = get_u64(&map.root, "t0", 0);
	unpack_release(&map);
	pk = packed_map_begin(&answer);
	pack_kv_u64(pk, "t0", t0);
	pack_kv_u64(pk, "t1", t1);
	conn->server->stats.clocks++;
	return server_send(conn, CREMA_FRAME_CLOCK, 0, &answer);
}

int server_frame(struct server_conn *conn, const struct frame *frame, const uint8_t *p,
		 size_t bytes)
{
	uint8_t type = frame->head.type;

	if (conn->state == CONN_AUTH && type == CREMA_FRAME_AUTH)
		return server_auth(conn, frame);
	/* The agent found our proof wrong or missing. */
	if ((conn->state == CONN_PROOF || conn->state == CONN_HELLO) && type == CREMA_FRAME_REFUSE)
		return server_conn_drop(conn, SERVER_bad_token, NULL);
	if (conn->state == CONN_PROOF && conn->proved && type == CREMA_FRAME_PROOF) {
		conn->state = CONN_HELLO;
		return 0;
	}
	if ((conn->state == CONN_HELLO || conn->state == CONN_OPEN) && type == CREMA_FRAME_HELLO)
		return on_hello(conn, frame, p, bytes);
	if (conn->state == CONN_OPEN && type == CREMA_FRAME_DATA)
		return on_data(conn, frame, p, bytes);
	if ((conn->state == CONN_HELLO || conn->state == CONN_OPEN) && type == CREMA_FRAME_CLOCK)
		return on_clock(conn, frame);
	/* A newer agent may send types that we do not have; before the token is proved it may
	 * not. */
	if (conn->state == CONN_OPEN && type > CREMA_FRAME_NOTE)
		return 0;
	return server_conn_drop(conn, SERVER_bad_order, NULL);
}
