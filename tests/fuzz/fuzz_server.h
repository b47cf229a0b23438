/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_server.h - the real server, its journal on nothing, and one peer of it on a socketpair.
 *
 * The first connection starts the server, which is never stopped. One thread.
 */
#ifndef TESTS_FUZZ_SERVER_H
#define TESTS_FUZZ_SERVER_H

#include "collector/ingest/server.h"

/* The peer's end. The settings that matter are those of the first call. */
int fuzz_connect(const struct server_config *config);
/* The server takes what has come, and answers. */
void fuzz_turn(void);
/* The peer goes, and the server notices. */
void fuzz_close(int fd);

#endif
