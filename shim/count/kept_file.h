/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kept_file.h - a file of /proc that is kept open: opening it costs three times as much as reading
 * it.
 *
 * A program may close descriptors that it did not open and open another file with the number. So
 * the number is checked before each use; if it has changed, the file is opened each time. The
 * number is high, where no program expects the next one. A forked child has its parent's file and
 * drops it. One thread at a time for each; no lock, no allocation.
 */
#ifndef CREMA_SHIM_COUNT_KEPT_FILE_H
#define CREMA_SHIM_COUNT_KEPT_FILE_H

#include <sys/types.h>

struct kept_file {
	int fd; /* + 1; 0: not kept */
	dev_t dev;
	ino_t ino;
};

/* Opens it; without a descriptor nothing is kept. */
void kept_file_open(struct kept_file *k, const char *path);
void kept_file_drop(struct kept_file *k);
/* Reads it from its start, ends it with a NUL; the bytes, or -errno. */
long kept_file_read(struct kept_file *k, const char *path, char *buf, size_t size);

#endif
