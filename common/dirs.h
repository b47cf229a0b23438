/* SPDX-License-Identifier: BSD-3-Clause */
/* dirs.h - where crema keeps its files. */
#ifndef CREMA_COMMON_DIRS_H
#define CREMA_COMMON_DIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#define DIRS_FIRST_USER 1000u /* UID_MIN of login.defs: below it are daemons, not people */

/*
 * The state directory: `given` if not NULL or empty, else $CREMA_DIR, else $XDG_STATE_HOME/crema,
 * else ~/.local/state/crema. 0, -ENOENT (no HOME) or -ENAMETOOLONG.
 */
int dirs_state(char *out, size_t size, const char *given);
/* $XDG_CONFIG_HOME/crema, else ~/.config/crema. */
int dirs_config(char *out, size_t size);
/*
 * Creates a directory and its missing parents, each 0700. 0 (also if it exists) or -errno; -EPERM
 * if another user could replace it: it or a parent is writable by all and not sticky.
 */
int dirs_make(const char *path);
/*
 * The same for a folder of records: -EPERM also if it belongs to a user other than root or this
 * one, or if others can write to it (a group too, unless it is root's or the user's private one).
 */
int dirs_make_own(const char *path);
/*
 * The same for a folder of outputs, whose names are known beforehand: -EPERM also if one of its
 * parents belongs to another user, who could replace it; root and system accounts (uid below
 * DIRS_FIRST_USER) are accepted. On error nothing is created.
 */
int dirs_make_output(const char *path);
/* True if a folder or file belongs to root or this user, and others cannot write to it. */
bool dirs_is_own(const struct stat *st);
/* dirs_make_own() without creating the folder: -ENOENT if it does not exist. */
int dirs_check_own(const char *path);
/* A line for users about an error of those above: what failed and what to do. Returns out. */
const char *dirs_explain(char *out, size_t size, int error, const char *path);
/* The part after the path's last '/'; `unknown` for NULL. */
const char *dirs_base(const char *path, const char *unknown);
/* "dir', 'more', 'more", for a message that quotes it; `more`: NULL at its end, or NULL. Returns
 * out. */
const char *dirs_text(char *out, size_t size, const char *dir, const char *const *more);
/* "dir/name" into out: 0 or -ENAMETOOLONG. */
int dirs_join(char *out, size_t size, const char *dir, const char *name);

#endif
