/* SPDX-License-Identifier: BSD-3-Clause */
/* buf.c - a growing byte buffer. */
#include "common/buf.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES (1u << 16)

int buf_reserve(struct buf *b, size_t more)
{
	size_t cap = b->cap ? b->cap : 256;
	unsigned char *data;

	if (b->error)
		return b->error;
	if (more <= b->cap - b->len)
		return 0;
	if (more > SIZE_MAX / 2 - b->len)
		return b->error = -ENOMEM;
	while (cap - b->len < more)
		cap *= 2;
	data = realloc(b->data, cap);
	if (!data)
		return b->error = -ENOMEM;
	b->data = data;
	b->cap = cap;
	return 0;
}

int buf_add(struct buf *b, const void *p, size_t n)
{
	if ((b->error || n > b->cap - b->len) && buf_reserve(b, n))
		return b->error;
	if (n)
		memcpy(b->data + b->len, p, n);
	b->len += n;
	return 0;
}

int buf_read(struct buf *b, int fd, size_t most)
{
	ssize_t n;

	while (b->len < most) {
		if (buf_reserve(b, READ_BYTES))
			return b->error;
		n = read(fd, b->data + b->len, READ_BYTES);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : 0;
		b->len += (size_t)n;
	}
	return -EFBIG;
}

size_t buf_lines(const struct buf *b)
{
	size_t i, n = 0;

	for (i = 0; i < b->len; i++)
		n += b->data[i] == '\n';
	return n;
}

void buf_consume(struct buf *b, size_t n)
{
	if (n >= b->len) {
		b->len = 0;
		return;
	}
	if (n)
		memmove(b->data, b->data + n, b->len - n);
	b->len -= n;
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->error = 0;
}

void buf_release(struct buf *b)
{
	free(b->data);
	*b = (struct buf)BUF_INIT;
}
