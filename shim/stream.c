/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.c - brackets around calls that may fill a stream's buffer. */
#define _GNU_SOURCE
#include "stream.h"

#include <string.h>
#include <unistd.h>

#include "extent.h"
#include "fd.h"
#include "sys.h"

/* An end of line in the buffer is enough for fgets and getline. */
static int has_enough(const FILE *f, size_t bytes)
{
	size_t have = (size_t)(f->_IO_read_end - f->_IO_read_ptr);

	if (f->_IO_read_end <= f->_IO_read_ptr)
		return 0;
	if (bytes == SIZE_MAX)
		return memchr(f->_IO_read_ptr, '\n', have) != NULL;
	return have >= bytes;
}

static int has_ended(const FILE *f)
{
	return (f->_flags & 0x10) != 0; /* _IO_EOF_SEEN */
}

void stream_begin(struct stream_op *s, FILE *f, size_t bytes)
{
	uint32_t kind;

	s->op.t = NULL;
	s->fd = f->_fileno;
	if (s->fd < 0 || !bytes || has_enough(f, bytes))
		return;
	kind = fd_lookup(s->fd).kind;
	if (kind != FD_DATA && kind != FD_IMPORT)
		return;
	s->at = SYS3(SYS_lseek, s->fd, 0, SEEK_CUR);
	if (s->at < 0)
		return;
	if (f->_IO_write_ptr > f->_IO_write_base) /* will be written before the read */
		s->at += f->_IO_write_ptr - f->_IO_write_base;
	s->file = f;
	s->ended = has_ended(f);
	read_begin(&s->op, s->fd, bytes);
}

void stream_end(struct stream_op *s)
{
	long bytes = SYS3(SYS_lseek, s->fd, 0, SEEK_CUR) - s->at;

	/* Nothing came: it was a read only if it has met the end just now. */
	if (!bytes && (s->ended || !has_ended(s->file)))
		bytes = -1;
	read_end(&s->op, s->fd, s->at, bytes);
	position_ask(s->fd);
}
