/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run_client.h - sets where the command of `crema run` records its client (python/crema/client.py).
 *
 * There is one file in DIR/clients for each command that is a Python process; the newest
 * RUN_CLIENTS are kept. The process that executes the command calls it, because the library
 * compares its id.
 */
#ifndef CREMA_COLLECTOR_CMD_RUN_CLIENT_H
#define CREMA_COLLECTOR_CMD_RUN_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RUN_CLIENTS 200

/* Puts the file's name into the environment; without a folder for it nothing is recorded.
 * `dir` as given. */
void run_client_set(const char *dir, uint64_t begin_mono_ns);
/* Whether the command with that process id left a record in which it waited for workers. */
bool run_client_waited(const char *dir, pid_t pid);

#endif
