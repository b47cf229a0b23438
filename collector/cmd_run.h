/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd_run.h - the parts of `crema run`, apart so that they can be tested.
 *
 * The command always runs: whatever keeps the library from being preloaded costs one line on
 * stderr and the measurement, nothing else.
 */
#ifndef COLLECTOR_CMD_RUN_H
#define COLLECTOR_CMD_RUN_H

#include <stddef.h>

/*
 * Finds libcrema.so for the program `exe` (a real path): beside it, else in ../lib/crema.
 * 0, -ENOENT, or -ENAMETOOLONG.
 */
int run_find_library(const char *exe, char *path, size_t size);

/*
 * Starts /bin/true with only `library` preloaded. 0 when it ended with 0 in time and printed
 * nothing; else -1 and the reason in `why`.
 */
int run_try_library(const char *library, char *why, size_t size);

/*
 * The path under which LD_PRELOAD can hold the library: its own, or where that has a space or a
 * colon, one through a link in the state directory. 0, -EINVAL (that has one, too), or -errno.
 */
int run_loadable(const char *library, char *out, size_t size);

/* Puts `library` first in LD_PRELOAD and keeps what is there. 0, -EINVAL (path with a space or a
 * colon, which LD_PRELOAD cannot hold), -ENOMEM. */
int run_set_preload(const char *library);

/* All of it; becomes the command. Returns 126 or 127 when it could not be executed or found. */
int run_command(const char *exe, char **command);

#endif
