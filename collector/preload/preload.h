/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * preload.h - how a command gets libcrema.so: the library is found, tried, and put into LD_PRELOAD.
 *
 * The command always runs: whatever keeps the library from being preloaded costs one line on
 * stderr and the measurement, nothing else.
 */
#ifndef CREMA_COLLECTOR_PRELOAD_PRELOAD_H
#define CREMA_COLLECTOR_PRELOAD_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Finds libcrema.so for the program `exe` (a real path): next to it, else in ../lib/crema.
 * 0, -ENOENT, or -ENAMETOOLONG.
 */
int preload_find(const char *exe, char *path, size_t size);

/*
 * Starts /bin/true with only `library` preloaded. 0 when it ended with 0 in time and printed
 * nothing; else -1 and the reason in `why`.
 */
int preload_try(const char *library, char *why, size_t size);

/*
 * The path under which LD_PRELOAD can hold the library: its own, or where that has a space or a
 * colon, one through a link in the state directory. 0, -EINVAL (that has one, too), or -errno.
 */
int preload_path(const char *library, char *out, size_t size);

/* Puts `library` first in LD_PRELOAD and keeps what is there. 0, -EINVAL (path with a space or a
 * colon, which LD_PRELOAD cannot hold), -ENOMEM. */
int preload_set(const char *library);

/* All of it. False: the command runs unmeasured, and why was printed. */
bool preload_prepare(const char *exe);

/* Becomes the command. Returns 126 or 127 when it could not be executed or found. */
int preload_exec(char **command);

#endif
