/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server_streams.h - how far each stream of each worker has got.
 *
 * One entry, about 150 bytes with its places in the tables, for each (worker, stream) that has
 * records in the journal or a connection now; the former are kept for good, as they recognise
 * duplicates. What a peer can add to that is bounded by SERVER_STREAMS_OF_WORKER and
 * SERVER_STREAMS. Both tables hash with a seed of this process, so nobody can choose names that
 * collide. Entries never move. Zeroed struct = empty tables; one thread.
 */
#ifndef CREMA_COLLECTOR_INGEST_SERVER_STREAMS_H
#define CREMA_COLLECTOR_INGEST_SERVER_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/table.h"
#include "wire.h"

#define SERVER_STREAMS_OF_WORKER 1024u /* an agent's life is one: 12 a minute at most */
#define SERVER_STREAMS (4u << 20)      /* of all workers, about 0.6 GB */

struct server_progress {
	uint8_t worker[CREMA_WORKER_ID_BYTES];
	uint64_t stream;
	uint64_t next;	  /* records below are in the journal's queue or in the journal */
	uint64_t written; /* records below are in the journal: only these may be acknowledged */
	uint64_t counted; /* records below were in the live numbers at the start, if more than next
			   */
	/* See server_acks.c. */
	uint64_t writing;
	struct server_progress *next_pending, *next_writing;
	bool is_pending;
	uint32_t users; /* connections that speak for it */
};

struct server_streams {
	struct table streams, workers; /* of struct server_progress; how many each worker has */
	uint64_t seed[2];
};

/* The entry, made if there is none; NULL: out of memory. */
struct server_progress *server_streams_get(struct server_streams *streams, const uint8_t *worker,
					   uint64_t stream);
/* A peer may not add this one: too many of the worker's, or of all. */
bool server_streams_full(const struct server_streams *streams, const uint8_t *worker,
			 uint64_t stream);
/* One connection more, or one less, which drops an entry that has no records. */
void server_streams_use(struct server_progress *progress);
void server_streams_leave(struct server_streams *streams, struct server_progress *progress);
void server_streams_release(struct server_streams *streams);

#endif
