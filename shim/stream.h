/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream.h - reads of C's streams (fread, fgets, getline), which libc does without calling read().
 *
 * What a call gives back is not what was read: streams read ahead into a buffer. The file's
 * position tells: it moves by what the kernel gave. A call that finds enough in the buffer reads
 * nothing and costs nothing; one that has to read counts as one read call. Reads of single
 * characters (getc) and fscanf are not seen. Streams of pipes and memory are left alone.
 */
#ifndef CREMA_SHIM_STREAM_H
#define CREMA_SHIM_STREAM_H

#include <stdio.h>

#include "op.h"

struct stream_op {
	struct op op; /* op.t is NULL: do not count */
	FILE *file;
	int fd, ended; /* its descriptor; 1: the end was met earlier */
	int64_t at;    /* the file's position */
};

/* `bytes` are wanted; SIZE_MAX if the call itself looks for an end. */
void stream_begin(struct stream_op *s, FILE *f, size_t bytes);
void stream_end(struct stream_op *s);

#endif
