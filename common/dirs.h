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
 * Makes a directory and its missing parents, each 0700. 0 (also if it is there) or -errno; -EPERM
 * if another user could replace it: it or a parent is writable by all and not sticky.
 */
int dirs_make(const char *path);
/*
 * The same for a folder of records: -EPERM also if it belongs to another user than root or this
 * one, or if others can write to it (a group too, unless it is root's or the user's private one).
 */
int dirs_make_own(const char *path);
/*
 * The same for a folder of outputs, whose names are known beforehand: -EPERM also if a folder that
 * it is in belongs to another user, who could put another one in its place; not to root or an
 * account of the system (uid below DIRS_FIRST_USER). Nothing is made then.
 */
int dirs_make_output(const char *path);
/* Whether a folder or file belongs to root or this user, and others cannot write to it. */
bool dirs_is_own(const struct stat *st);
/* dirs_make_own() of a folder that is not made: -ENOENT if it is not there. */
int dirs_check_own(const char *path);
/* A line for people about an error of those above: what failed and what to do. Returns out. */
const char *dirs_explain(char *out, size_t size, int error, const char *path);
/* What is behind the path's last '/'; `unknown` of NULL. */
const char *dirs_base(const char *path, const char *unknown);
/* "dir', 'more', 'more", for a message that quotes it; `more`: NULL at its end, or NULL. Returns
 * out. */
const char *dirs_text(char *out, size_t size, const char *dir, const char *const *more);
/* "dir/name" into out: 0 or -ENAMETOOLONG. */
int dirs_join(char *out, size_t size, const char *dir, const char *name);

#endif
