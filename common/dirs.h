/* SPDX-License-Identifier: BSD-3-Clause */
/* dirs.h - where crema keeps its files. */
#ifndef COMMON_DIRS_H
#define COMMON_DIRS_H

#include <stddef.h>

/*
 * The state directory: `given` if not NULL or empty, else $CREMA_DIR, else $XDG_STATE_HOME/crema,
 * else ~/.local/state/crema. 0, -ENOENT (no HOME) or -ENAMETOOLONG.
 */
int dirs_state(char *out, size_t size, const char *given);
/* $XDG_CONFIG_HOME/crema, else ~/.config/crema. */
int dirs_config(char *out, size_t size);
/* Makes a directory and its missing parents, each 0700. 0 (also if it is there) or -errno. */
int dirs_make(const char *path);
/* "dir/name" into out: 0 or -ENAMETOOLONG. */
int dirs_join(char *out, size_t size, const char *dir, const char *name);

#endif
