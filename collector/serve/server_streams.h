/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server_streams.h - how far each stream of each worker has got.
 *
 * One entry per (worker, stream) that was ever journaled, 80 bytes each, kept for good: it is what
 * recognises duplicates. Entries never move. Zeroed struct = empty table; one thread.
 */
#ifndef COLLECTOR_SERVER_STREAMS_H
#define COLLECTOR_SERVER_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

struct server_progress {
	uint8_t worker[CREMA_WORKER_ID_BYTES];
	uint64_t stream;
	uint64_t next;	  /* records below are in the journal's queue or in the journal */
	uint64_t written; /* records below are in the journal: only these may be acknowledged */
	/* See server_acks.c. */
	uint64_t leaving;
	struct server_progress *next_fresh, *next_leaving;
	bool is_fresh;
};

struct server_streams {
	struct server_progress **slot;
	size_t slots, used, workers;
};

/* The entry, made if there is none; NULL: out of memory. */
struct server_progress *server_streams_get(struct server_streams *streams, const uint8_t *worker,
					   uint64_t stream);
void server_streams_release(struct server_streams *streams);

#endif
