/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * atomic_file.h - a file that appears whole or not at all.
 *
 *	atomic_file_init(&d, path);  ... sink_puts(&d.sink, text) ...;  rc = atomic_file_end(&d,
 *why);
 *
 * It is written next to its place under a random name, ".NAME.crema-XXXXXX", that did not exist
 * before, and renamed at the end. A link is followed:
 * its target is replaced, the link stays. What exists and is not a regular file (a pipe,
 * /dev/stdout) cannot be replaced: it is written to at once. Every function returns 0 or -errno;
 *atomic_file_drop() gives up, and does nothing after a close. A new file is its owner's only
 *(0600); one that is replaced passes its permissions on. The first error sticks until then. "-" is
 *standard output; the reader of a pipe may have seen enough: that is not an error.
 */
#ifndef CREMA_COLLECTOR_EXPORT_ATOMIC_FILE_H
#define CREMA_COLLECTOR_EXPORT_ATOMIC_FILE_H

#include <limits.h>

#include "collector/emit/emit.h"

struct atomic_file {
	char path[PATH_MAX]; /* where it will stand */
	char temp[PATH_MAX]; /* "" = written in place */
	unsigned int mode;   /* of the file that it replaces; 0: none */
	int fd;		     /* -1: not open */
	int error;
	struct buf buf;
	struct sink sink;
};

int atomic_file_init(struct atomic_file *d, const char *path);
/* What the sink holds goes to the file, and the file to the disk. */
int atomic_file_finish(struct atomic_file *d);
/* atomic_file_finish() and the rename; drops it after an error. */
int atomic_file_close(struct atomic_file *d);
/* atomic_file_close() with one line about an error in `why`. */
int atomic_file_end(struct atomic_file *d, struct buf *why);
void atomic_file_drop(struct atomic_file *d);
/* The folder of an output of several files, made if it is not there; one line in `why` where it is
 * "-" or cannot be ours (dirs_make_output()). */
int atomic_file_folder(const char *option, const char *path, struct buf *why);

#endif
