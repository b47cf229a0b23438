/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.h - the collector's side of the agents' connections.
 *
 * It accepts connections, proves the token to the agent and verifies the agent's proof, and
 * journals DATA frames before it acknowledges them. Records that are in the journal already are
 * recognized by their sequence numbers and dropped. A misbehaving peer gets the reason (REFUSE), is
 * disconnected and counted; others are not affected.
 *
 * Bounds: `max_connections` peers; per peer one unfinished frame (a small one before it has proved
 * the token), one HELLO, one send queue, and SERVER_ROUND_BYTES of inflated payload per round.
 * While the journal is stuck, nothing is acknowledged and peers with data are not read.
 *
 * It runs in the loop's thread and owns the loop's round end. Free it before the journal and
 * the loop.
 */
#ifndef CREMA_COLLECTOR_INGEST_SERVER_H
#define CREMA_COLLECTOR_INGEST_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/journal/journal.h"
#include "collector/live/live.h"
#include "collector/loop/loop.h"
#include "common/auth.h"

#define SERVER_CONNECTIONS 16384u /* 10,000 agents, and room for other peers */
#define SERVER_HANDSHAKE_MS 10000 /* from accept to HELLO */
#define SERVER_FRAME_MS 30000	  /* from the first byte of a frame to its last */
#define SERVER_LINGER_MS 2000	  /* for a refused peer to read why */
#define SERVER_LOG_MS 10000	  /* at most one line per reason in this time */
#define SERVER_RETRY_MS 1000	  /* between retries of a stuck journal */
#define SERVER_SWEEP_MS 1000	  /* between checks for slow peers */
#define SERVER_ROUND_BYTES (8u << 20)
#define SERVER_REST_NS UINT64_C(2000000) /* after a round with few frames: collects more */
#define SERVER_AUTH_BYTES 1024u /* maximum size of a stored frame before the token is proved */
#define SERVER_HELLO_BYTES (256u << 10) /* largest stored HELLO */
#define SERVER_CALIBRATIONS 2u

/* REASON(id, text): why a peer was dropped. */
#define SERVER_REASONS                                                                             \
	REASON(bad_tls, "no TLS connection")                                                       \
	REASON(bad_token, "wrong token")                                                           \
	REASON(bad_seal, "bytes that were changed, repeated or left out on their way")             \
	REASON(bad_names, "names are not hidden: start the workers with CREMA_REDACT_KEYS=on")     \
	REASON(bad_version, "no common protocol version")                                          \
	REASON(bad_frame, "bytes that are not a valid frame")                                      \
	REASON(bad_payload, "a frame with invalid content")                                        \
	REASON(bad_order, "a frame that is not expected there")                                    \
	REASON(too_large, "a frame that is too large")                                             \
	REASON(too_slow, "too slow")                                                               \
	REASON(too_many, "too many connections")                                                   \
	REASON(too_many_streams, "too many streams of one worker, or of all")                      \
	REASON(too_many_workers, "too many workers that have not said goodbye")                    \
	REASON(not_reading, "does not read its acknowledgements")                                  \
	REASON(cut, "connection ended inside a frame")                                             \
	REASON(no_memory, "out of memory")

enum server_reason {
#define REASON(id, text) SERVER_##id,
	SERVER_REASONS
#undef REASON
		SERVER_REASON_COUNT
};

struct server_config {
	struct loop *loop;
	struct journal *journal;
	struct live *live;		/* gets what is journaled; may be NULL */
	struct tls_context *tls;	/* NULL: connections are plain */
	const struct auth_token *token; /* NULL: none */
	bool insecure;			/* agents without a token are accepted */
	bool old_agents;		/* also of protocol 1, whose data is not sealed */
	const char *name;		/* sent in WELCOME */
	bool redacted_only;		/* refuse agents that send names in the clear */
	/* Files of verdicts for the agents (common/calibration.h), NULL: none; the last one's win.
	 */
	const char *calibration[SERVER_CALIBRATIONS];
	/* 0: the values above */
	unsigned int max_connections;
	int64_t handshake_ms, frame_ms, linger_ms, log_ms, retry_ms, sweep_ms;
};

struct server_stats {
	uint64_t connections; /* accepted so far */
	uint64_t connected;   /* agents now connected, after the handshake */
	uint64_t workers;     /* with records in the journal (from earlier collectors, too), or
				 connected */
	uint64_t frames, records, bytes; /* journaled DATA only; bytes as received */
	uint64_t duplicate_records;
	uint64_t missing_records; /* record numbers that a stream skipped */
	uint64_t clocks;
	uint64_t refused[SERVER_REASON_COUNT];
};

/* A connected agent; texts are valid during the call. */
struct server_agent {
	const char *peer, *host;
	char worker[FRAME_HEX_BYTES];
	uint64_t pid, records, bytes, next;
};

struct server;

struct server *server_new(const struct server_config *config); /* NULL: out of memory */
void server_free(struct server *server);		       /* closes all connections */
/* Reads the segments in dir, to recognize their records. 0 or -errno. */
int server_restore(struct server *server, const char *dir);
/*
 * Makes a checkpoint (journal/checkpoint.h) of what is in the journal's files by now, as
 * journal_head. Unlike one at the head of a segment it may be anywhere: data that is still to be
 * written does not count as received.
 */
int server_state(void *server, struct buf *out);
/* Takes a connected socket; can be passed to loop_listener_new(). */
void server_accept(void *server, int fd);
/* Processes data that has arrived, for max_ms at most, and acknowledges it. */
void server_drain(struct server *server, int64_t max_ms);
/* Writes a NOTE with the counts of dropped peers, if there were any since the last one. */
void server_note_refused(struct server *server);

void server_get_stats(const struct server *server, struct server_stats *stats);
void server_each_agent(const struct server *server,
		       void (*fn)(void *arg, const struct server_agent *agent), void *arg);
const char *server_reason_id(enum server_reason reason);
uint64_t server_refused_total(const struct server_stats *stats);

#endif
