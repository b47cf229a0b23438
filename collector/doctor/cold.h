/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cold.h - a file whose pages can be dropped from the page cache and counted there.
 *
 * It is either a new file with incompressible bytes, whose name is removed before anything is
 * written, so that the kernel frees it however this process ends; or an existing one, which is only
 * read. Errors are one line in `why`. Descriptors may be used by several threads; cold_drop() and
 * the rest by one.
 */
#ifndef CREMA_COLLECTOR_DOCTOR_COLD_H
#define CREMA_COLLECTOR_DOCTOR_COLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define COLD_FDS 4 /* each with a separate read-ahead state */
#define COLD_WHY 512
#define COLD_MIB ((size_t)1 << 20)
#define COLD_LEAST (8 * COLD_MIB)
#define COLD_MOST (64 * COLD_MIB)

struct cold {
	int fd[COLD_FDS];
	size_t bytes; /* whole MiB: the used part from the file's start */
	size_t size;  /* of all its pages: read-ahead may go beyond `bytes` */
	size_t page;
	bool made;	  /* false: only read */
	dev_t device;	  /* block device of the file system; 0: none, or unknown */
	bool device_seen; /* its reads equalled the charge: the file is on it */
	char why[COLD_WHY];
};

#define COLD_INIT                                                                                  \
	{                                                                                          \
		.fd = { -1, -1, -1, -1 }                                                           \
	}

/* How much to write given the free space: whole MiB, half of it at most; 0: too little. */
size_t cold_size(uint64_t free_bytes);
/* A folder: creates and writes a file there. A file: opens it. 0 or -errno with `why`. */
int cold_open(struct cold *c, const char *path);
void cold_close(struct cold *c);
/* Drops it from the page cache and verifies that: 0 or -errno with `why`. */
int cold_drop(struct cold *c);
/* Bytes of its pages in [at, at + n) that are in the page cache; -errno. */
ssize_t cold_resident(const struct cold *c, size_t at, size_t n);

#endif
