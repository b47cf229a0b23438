/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * top_fetch.h - GET live.json from a collector, by libcurl, without blocking.
 *
 *	fetch_start(f); while (!fetch_done(f)) fetch_wait(f, fd, ms);
 *
 * The token is never sent: if the collector requires it, a proof of it is sent and the
 * response is sealed (common/proof.h). A plain response over http is only accepted from a
 * process of this user or of root on this machine, according to the kernel: any user can
 * listen on a port. No proxy, no redirects.
 */
#ifndef CREMA_COLLECTOR_TOP_TOP_FETCH_H
#define CREMA_COLLECTOR_TOP_TOP_FETCH_H

#include <stdbool.h>

#include "common/buf.h"

#define FETCH_SECONDS 5
#define FETCH_BYTES_MAX (64u << 20)

struct fetch;

/* at: HOST:PORT, or with https:// before it, by the cluster's certificates. token_file NULL: the
 * default. NULL with a line in `why`. */
struct fetch *fetch_new(const char *at, const char *token_file, char *why, size_t size);
void fetch_free(struct fetch *fetch);
int fetch_start(struct fetch *fetch); /* 0 or -errno */
bool fetch_running(const struct fetch *fetch);
/* Waits for the response, for input on fd (-1: none), or for ms. True: the response has arrived. */
bool fetch_wait(struct fetch *fetch, int fd, int ms);
/* The response; NULL with a line in `why`: what is wrong and what to do. */
const struct buf *fetch_answer(struct fetch *fetch, char *why, size_t size);
const char *fetch_from(const struct fetch *fetch); /* HOST:PORT */

#endif
