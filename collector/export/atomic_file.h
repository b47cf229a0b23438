/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * atomic_file.h - a file that appears whole or not at all.
 *
 *	atomic_file_init(&d, path);  ... sink_puts(&d.sink, text) ...
 *	rc = atomic_file_end(&d, why);
 *
 * The file is written in the target's folder under a new random name, ".NAME.crema-XXXXXX", and
 * renamed at the end. A symbolic link is followed: its target is replaced, the link stays. An
 * existing path that is not a regular file (a pipe, /dev/stdout) cannot be replaced: it is written
 * directly. "-" is standard output. If the reader of a pipe closes it early, that is not an error.
 *
 * Every function returns 0 or -errno; the first error sticks until the end. atomic_file_drop()
 * discards the file, and does nothing after a close. A new file is private to its owner (0600); a
 * replaced one keeps its permissions.
 */
#ifndef CREMA_COLLECTOR_EXPORT_ATOMIC_FILE_H
#define CREMA_COLLECTOR_EXPORT_ATOMIC_FILE_H

#include <limits.h>

#include "collector/emit/emit.h"

struct atomic_file {
	char path[PATH_MAX]; /* final path */
	char temp[PATH_MAX]; /* "": written in place */
	unsigned int mode;   /* of the replaced file; 0: none */
	int fd;		     /* -1: not open */
	int error;
	struct buf buf;
	struct sink sink;
};

int atomic_file_init(struct atomic_file *d, const char *path);
/* Writes the sink's content to the file, and syncs the file. */
int atomic_file_finish(struct atomic_file *d);
/* atomic_file_finish() and the rename; discards the file after an error. */
int atomic_file_close(struct atomic_file *d);
/* atomic_file_close() with one line about an error in `why`. */
int atomic_file_end(struct atomic_file *d, struct buf *why);
void atomic_file_drop(struct atomic_file *d);
/* The folder for an output of several files, created if missing; one line in `why` if it is "-" or
 * cannot be ours (dirs_make_output()). */
int atomic_file_folder(const char *option, const char *path, struct buf *why);

#endif
