/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream.h - reads and writes of C's streams (fread, fgets, getc, fseek, fwrite, fprintf), which
 * libc does without calling read() or write().
 *
 * A call does not return what was read, because streams read ahead into a buffer. The file's
 * position shows it: it advances by the bytes that the kernel returned. A call that finds enough in
 * the buffer reads nothing and costs nothing; one that must read counts as one read call. fscanf is
 * not seen. Streams of pipes and memory are ignored.
 *
 * A seek reads, too: glibc moves to the block of its buffer that contains the target and reads up
 * to the target, or the whole block. Then the buffer, not the position, shows what was read: after
 * a seek it is unchanged (the target was in it), contains exactly the bytes read, or is empty.
 * Empty means no read, or a read that reached the end of the file before the target; only this case
 * needs a system call. A failed read does not count. Streams of wide characters are ignored.
 *
 * A write counts the bytes that the stream accepted, for the task that wrote them, although a later
 * flush writes them. It counts as a call if it made the stream write; a flush of the rest does not.
 * The compiler may inline putc_unlocked: those bytes are not seen.
 */
#ifndef CREMA_SHIM_COUNT_STREAM_H
#define CREMA_SHIM_COUNT_STREAM_H

#include <dirent.h>
#include <stdio.h>

#include "shim/count/op.h"

struct stream_op {
	struct op op; /* op.t is NULL: do not count */
	FILE *file;
	int fd, ended;	 /* its descriptor; 1: the end was met earlier */
	int64_t at;	 /* the file's position; of a seek: as libc has it, negative: none; of a
			  * write: what was waiting to be written */
	const char *end; /* of a seek: where the buffer ended */
	int relative;	 /* of a seek: by lseek(SEEK_CUR) alone */
};

/* Everything up to and including this character is needed. */
#define STREAM_UNTIL(c) (SIZE_MAX - (unsigned char)(c))

/* Bytes that printf's result stands for. */
#define PRINTED(result) ((result) < 0 ? 0 : (size_t)(result))

/* The descriptor of a stream that libc is about to close; negative: it has none. errno is kept,
 * which fileno() sets for a stream in memory. */
int stream_fd(const FILE *f);
/* The same for a directory; NULL: closedir() refuses it. */
int directory_fd(DIR *d);

/* `bytes` are needed, or STREAM_UNTIL(). */
void stream_begin(struct stream_op *s, FILE *f, size_t bytes);
void stream_end(struct stream_op *s);
void stream_write_begin(struct stream_op *s, FILE *f);
void stream_write_end(struct stream_op *s, size_t bytes);
/* Around a seek with lseek's whence; failed: what it returned. */
void stream_seek_begin(struct stream_op *s, FILE *f, int whence);
void stream_seek_end(struct stream_op *s, int failed);

#endif
