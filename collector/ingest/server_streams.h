/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server_streams.h - the progress of each stream of each worker.
 *
 * There is one entry, about 150 bytes including the tables, for each (worker, stream) that has
 * records in the journal or a connection. Those with records are kept forever, as they identify
 * duplicates. SERVER_STREAMS_OF_WORKER and SERVER_STREAMS limit what a peer can add. Both tables
 * hash with a random seed per process, so an attacker cannot choose names that collide. Entries
 * never move. Zeroed struct = empty tables; one thread.
 */
#ifndef CREMA_COLLECTOR_INGEST_SERVER_STREAMS_H
#define CREMA_COLLECTOR_INGEST_SERVER_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/table.h"
#include "wire.h"

#define SERVER_STREAMS_OF_WORKER 1024u /* a stream is an agent's lifetime: 12 a minute at most */
#define SERVER_STREAMS (4u << 20)      /* of all workers, about 0.6 GB */

struct server_progress {
	uint8_t worker[CREMA_WORKER_ID_BYTES];
	uint64_t stream;
	uint64_t next;	  /* records below this are in the journal or its queue */
	uint64_t written; /* records below are in the journal: only these may be acknowledged */
	uint64_t counted; /* records below this were in the live numbers at the start, if more than
			     next */
	/* See server_acks.c. */
	uint64_t writing;
	struct server_progress *next_pending, *next_writing;
	bool is_pending;
	uint32_t users; /* connections that send for it */
};

struct server_streams {
	struct table streams, workers; /* of struct server_progress; the number for each worker */
	uint64_t seed[2];
};

/* The entry, created if there is none; NULL: out of memory. */
struct server_progress *server_streams_get(struct server_streams *streams, const uint8_t *worker,
					   uint64_t stream);
/* A peer may not add this one: there are too many, of the worker or of all. */
bool server_streams_full(const struct server_streams *streams, const uint8_t *worker,
			 uint64_t stream);
/* Adds or removes a connection; the last one removes an entry without records. */
void server_streams_use(struct server_progress *progress);
void server_streams_leave(struct server_streams *streams, struct server_progress *progress);
void server_streams_release(struct server_streams *streams);

#endif
