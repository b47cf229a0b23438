/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * preload.h - finds libcrema.so, tests it, and puts it into LD_PRELOAD of a command.
 *
 * The command always runs: if the library cannot be preloaded, one line on stderr reports it, and
 * the command is not measured.
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
 * Runs /bin/true, or this program where there is none, with only `library` preloaded. 0 if it
 * exited with 0 in time and printed nothing; else -1 and the reason in `why`.
 */
int preload_try(const char *library, char *why, size_t size);

/*
 * The path of the library for LD_PRELOAD: its own or, if that has a space or a colon, one through a
 * link in the state directory. 0, -EINVAL (that has one, too), or -errno.
 */
int preload_path(const char *library, char *out, size_t size);

/* Puts `library` first in LD_PRELOAD and keeps the rest. 0, -EINVAL (a path with a space or a
 * colon, which LD_PRELOAD cannot hold), -ENOMEM. */
int preload_set(const char *library);

/* Does all of this. False: the command runs unmeasured, and the reason was printed. */
bool preload_prepare(const char *exe);

/* Executes the command. Returns 126 or 127 if it could not be executed or found. */
int preload_exec(char **command);

#endif
