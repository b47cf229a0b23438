/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_server.h - the real server, with a journal that stores nothing, and one peer on a
 * socketpair.
 *
 * The first connection starts the server, which is never stopped. One thread.
 */
#ifndef TESTS_FUZZ_SERVER_H
#define TESTS_FUZZ_SERVER_H

#include "collector/ingest/server.h"

/* Returns the peer's end. Only the settings of the first call count. */
int fuzz_connect(const struct server_config *config);
/* The server reads what has arrived, and replies. */
void fuzz_turn(void);
/* The peer disconnects, and the server notices. */
void fuzz_close(int fd);

#endif
