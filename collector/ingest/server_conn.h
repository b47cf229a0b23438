/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server_conn.h - shared by the files of the server, and included only by them.
 *
 * They are one state machine and call each other. server.c: accepting, rounds, timers;
 * server_conn.c: one connection's bytes, limits and end; server_handshake.c: versions, the proof of
 * the token, the keys; server_frames.c: what each frame type means; server_acks.c: acknowledging
 * what is written; server_restore.c: what earlier collectors wrote, and feeding the live numbers;
 * server_calibration.c: verdicts on file systems for the agents; server_stats.c: lines, notes and
 * numbers. Functions that return -1 have dropped the connection: the caller must not touch it
 * again.
 */
#ifndef CREMA_COLLECTOR_INGEST_SERVER_CONN_H
#define CREMA_COLLECTOR_INGEST_SERVER_CONN_H

#include "collector/ingest/server.h"
#include "collector/ingest/server_streams.h"
#include "collector/loop/secure.h"
#include "common/buf.h"
#include "common/pack.h"
#include "common/seal.h"

enum conn_state {
	CONN_AUTH,  /* the challenge is sent */
	CONN_PROOF, /* our proof is sent: from now on data must be sealed, except for a REFUSE */
	CONN_HELLO, /* the token was proved, or none is required */
	CONN_OPEN,
	CONN_ENDING, /* refused; lingers so that the peer can read why */
};

struct server_conn {
	struct server *server;
	struct server_conn *next, *prev;
	struct server_conn *next_pending, *next_writing; /* see server_acks.c */
	bool is_pending, is_writing;
	struct secure stream;
	enum conn_state state;
	bool backlog; /* whole frames may be in `in`: the journal or the budget is full */
	bool proved;  /* a sealed record of the agent was opened, so it has the token */
	uint8_t nonce[AUTH_NONCE_BYTES];
	struct seal seal_in, seal_out; /* seal_in.cipher NULL: frames are not sealed */
	uint8_t worker[CREMA_WORKER_ID_BYTES];
	uint64_t stream_id;
	uint8_t version;
	struct server_progress *progress;
	struct buf hello; /* the HELLO frame, verbatim */
	struct journal_hello journal_hello;
	struct buf in;
	int64_t deadline_ms;   /* of the handshake or of lingering; 0: none */
	int64_t frame_ms;      /* when the unfinished frame began; 0: none */
	uint64_t round, spent; /* inflated bytes in this round */
	uint64_t pid, records, bytes;
	char peer[80];
	char host[64];
};

struct server {
	struct server_config config;
	struct server_stats stats;
	struct server_streams streams;
	struct server_conn *conns;
	struct server_acks {
		struct {
			struct server_conn *conns;
			struct server_progress *progress;
		} pending, writing;
		uint64_t ticket; /* of what is being written */
		bool any_writing;
	} acks;
	unsigned int conn_count;
	uint64_t round, refused_noted;
	uint64_t round_bytes; /* inflated, of all connections in this round */
	struct loop_timer *sweep, *retry;
	bool retry_set, no_memory, live_failed, old_agent_seen;
	int64_t note_ms; /* when to note dropped peers again */
	struct evp_cipher_ctx_st *cipher;
	struct server_calibration {
		struct calibration_file {
			struct calibration_stamp {
				uint64_t dev, ino, size, mtime_ns, ctime_ns;
			} seen, used; /* at the last check; when it was read. 0: no file */
			bool passing; /* the last read failed for a reason that may pass */
			struct buf text;
		} file[SERVER_CALIBRATIONS];
		struct buf frame; /* for all agents; empty: there was never a verdict */
		bool unsent;	  /* it could not be made, for a reason that may pass */
	} calibration;
	struct buf scratch, out, starts;
	struct buf sealed, opened; /* a sealed record to send; the text of a received one */
	struct {
		int64_t next_ms;
		uint64_t silent;
	} log[SERVER_REASON_COUNT];
};

/* server_conn.c */
extern const struct loop_stream_ops server_conn_ops;
/* Processes the rest of `in` after a backlog. 0 or -1. */
int server_conn_resume(struct server_conn *conn);
/* Refuses the peer: logs one line, counts it, sends the reason, and lingers. Always -1. */
int server_conn_drop(struct server_conn *conn, enum server_reason reason, const char *detail);
/* Frees it at once. */
void server_conn_free(struct server_conn *conn);

/* server_handshake.c */
int server_send_challenge(struct server_conn *conn);
/* AUTH: 0 or -1. */
int server_auth(struct server_conn *conn, const struct frame *frame);

/* server_frames.c */
/* Ends the map and queues a frame of it; map NULL: no payload. 0 or -1. */
int server_send(struct server_conn *conn, uint8_t type, uint64_t seq, struct packed_map *map);
/* Opens the frame's payload as a map. 0 (release it) or -1. */
int server_open_map(struct server_conn *conn, const struct frame *frame, struct unpack *map);
/* Queues a whole frame. 0 or -1. */
int server_send_frame(struct server_conn *conn, const struct buf *frame);
int server_send_refuse(struct server_conn *conn, const char *reason);
int server_send_ack(struct server_conn *conn);
/* Handles one whole frame (verbatim at p). 0; -1; or -EAGAIN: the journal accepts nothing now. */
int server_frame(struct server_conn *conn, const struct frame *frame, const uint8_t *p,
		 size_t bytes);

/* server_acks.c: what to acknowledge, and when */
void server_acks_advance(struct server *server, struct server_progress *progress, uint64_t next);
void server_acks_want(struct server_conn *conn);
void server_acks_forget(struct server_conn *conn);
/* Acknowledges what is in the journal by now. */
void server_acks_settle(struct server *server);

/* server_payload.c's check of an inflated payload, and the offsets of its messages. */
int server_messages(struct server *server, const struct crema_frame_header *head,
		    const unsigned char *raw, const uint32_t **starts);
/* Feeds a checked frame to the live numbers. */
void server_feed_live(struct server *server, const struct server_progress *progress,
		      const struct crema_frame_header *head, const unsigned char *raw,
		      const uint32_t *starts);

/* server_checkpoint.c: the journal's head of segments, as journal_head; and restoring the newest
 * one in dir, by a server without any state yet. 0, with *found zeroed if there is none; or
 * -errno. */
struct server_checkpoint {
	uint64_t created_ns; /* of the first segment that may hold more */
	uint64_t bytes;
};
int server_checkpoint(void *server, struct buf *out);
int server_take_checkpoint(struct server *server, const char *dir, struct server_checkpoint *found);

/* server_calibration.c. Reads files that have changed, and sends them to all agents; `first`: also
 * one that may still be being written. */
void server_calibration_check(struct server *server, bool first);
/* Sends the verdicts, if there are any, to an agent that understands them. 0 or -1. */
int server_calibration_send(struct server_conn *conn);
void server_calibration_release(struct server_calibration *calibration);

/* server.c: retries a stuck journal and the backlogs in ms */
void server_want_retry(struct server *server, int64_t ms);

/* server_stats.c: one rate-limited line on stderr */
void server_log(struct server *server, enum server_reason reason, const char *peer,
		const char *detail);

#endif
