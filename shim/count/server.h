/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.h - requests to storage servers: how many, how many bytes came, how long each took.
 *
 * One row per (scheme, address, span) in shared memory. A request's latency is the time from
 * sending it to the last byte of its response, as its sender sees it. Requests overlap, so the sum
 * of latencies is not wall time. If the request names the file, it counts in the file's row, too.
 * What one request is: exchange.h for connections, docs/attribution.md for XRootD.
 *
 * Any thread, with or without the GIL; no lock, no allocation.
 */
#ifndef CREMA_SHIM_COUNT_SERVER_H
#define CREMA_SHIM_COUNT_SERVER_H

#include "shim/shim.h"

struct server_request {
	uint64_t task;		  /* name of the task (task.h) that made it; 0: none */
	uint32_t scheme, address; /* string ids (arena_id) */
	uint32_t url;		  /* the file's, a string id; 0: unknown */
	uint64_t read_bytes, latency_ns;
	int failed;
};

/* Counts a request that has ended. */
void server_count(const struct server_request *r);

#endif
