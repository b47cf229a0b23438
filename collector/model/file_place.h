/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_place.h - which rows of files are of one file.
 *
 * A path names one file on each host if its file system is the host's own, such as a scratch disk,
 * and one file in all if hosts share it, as they do a URL. A host is a boot of a machine and a
 * name: containers of one machine have different names, and often different file systems.
 */
#ifndef CREMA_COLLECTOR_MODEL_FILE_PLACE_H
#define CREMA_COLLECTOR_MODEL_FILE_PLACE_H

#include "collector/model/model.h"

/* By its kind and file system. */
enum fsplace file_place(const struct file_row *f);
/* Whether each host has its own file of this path. */
bool file_is_own(const struct file_row *f);
bool file_same_host(const struct worker *a, const struct worker *b);
/* By path, then by host if it has its own; 0: one file, unless file_may_differ(). */
int file_order(const struct file_row *a, const struct file_row *b);
/* Rows of one path that may be of two files: extents of one say nothing about the other. `size`: of
 * those before `f`; `first`: one of them. */
bool file_may_differ(const struct file_row *first, struct value size, const struct file_row *f);
/* "PATH (HOST)", where several hosts have their own. */
int file_name_own(struct buf *to, const char *path, const struct worker *w);

#endif
