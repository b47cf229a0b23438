/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * buf.h - a growing byte buffer.
 *
 * A zeroed struct is an empty buffer. Failure is sticky: after an allocation failed `error` is
 * -ENOMEM, later additions do nothing, and the caller checks once at the end. One owner, no
 * locking. Pointers into `data` are valid until the next call that grows, consumes or releases.
 */
#ifndef CREMA_COMMON_BUF_H
#define CREMA_COMMON_BUF_H

#include <stddef.h>

struct buf {
	unsigned char *data;
	size_t len;
	size_t cap;
	int error;
};

#define BUF_INIT                                                                                   \
	{                                                                                          \
		NULL, 0, 0, 0                                                                      \
	}

/* Makes room for `more` additional bytes; 0 or -ENOMEM. */
int buf_reserve(struct buf *b, size_t more);
/* Appends `n` bytes; 0 or -ENOMEM. p may be NULL when n is 0. */
int buf_add(struct buf *b, const void *p, size_t n);
/* Appends the rest of a file. 0, -EFBIG once there are `most` bytes or more in total, or -errno. */
int buf_read(struct buf *b, int fd, size_t most);
/* Number of lines that end in it. */
size_t buf_lines(const struct buf *b);
/* Removes the first n bytes (all of them if there are fewer). */
void buf_consume(struct buf *b, size_t n);
/* Empties it and forgets an error; the memory stays. */
void buf_clear(struct buf *b);
/* Frees it; the struct is empty and usable afterwards. */
void buf_release(struct buf *b);

#endif
