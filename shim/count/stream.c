/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.c - brackets around calls that may fill a stream's buffer. */
#define _GNU_SOURCE
#include "shim/count/stream.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/count/extent.h"
#include "shim/count/fd.h"
#include "shim/libc/sys.h"

int stream_fd(const FILE *f)
{
	return f ? f->_fileno : -1;
}

int directory_fd(DIR *d)
{
	return d ? dirfd(d) : -1;
}

/* For fgets and getline it is enough if the buffer contains their character. */
static int has_enough(const FILE *f, size_t bytes)
{
	size_t have = (size_t)(f->_IO_read_end - f->_IO_read_ptr);

	if (f->_IO_read_end <= f->_IO_read_ptr)
		return 0;
	if (bytes >= STREAM_UNTIL(UCHAR_MAX))
		return memchr(f->_IO_read_ptr, (int)(SIZE_MAX - bytes), have) != NULL;
	return have >= bytes;
}

/* Flags of glibc's streams: the same in all its versions, but in no public header. */
enum { NO_READS = 0x4, EOF_SEEN = 0x10, IN_BACKUP = 0x100, APPENDING = 0x1000 };

static int has_ended(const FILE *f)
{
	return (f->_flags & EOF_SEEN) != 0;
}

static int64_t waiting(const FILE *f)
{
	return f->_IO_write_ptr > f->_IO_write_base ? f->_IO_write_ptr - f->_IO_write_base : 0;
}

static int is_followed(int fd)
{
	uint32_t kind = fd >= 0 ? fd_lookup(fd).kind : FD_UNKNOWN;

	return kind == FD_DATA || kind == FD_IMPORT;
}

void stream_begin(struct stream_op *s, FILE *f, size_t bytes)
{
	s->op.t = NULL;
	s->fd = f->_fileno;
	if (!bytes || has_enough(f, bytes) || !is_followed(s->fd))
		return;
	s->at = SYS3(SYS_lseek, s->fd, 0, SEEK_CUR);
	if (s->at < 0)
		return;
	s->at += waiting(f); /* will be written before the read */
	s->file = f;
	s->ended = has_ended(f);
	read_begin(&s->op, s->fd, bytes);
}

void stream_end(struct stream_op *s)
{
	long bytes = SYS3(SYS_lseek, s->fd, 0, SEEK_CUR) - s->at;

	/* Nothing came: it was a read only if it has just reached the end of the file. */
	if (!bytes && (s->ended || !has_ended(s->file)))
		bytes = -1;
	read_end(&s->op, s->fd, s->at, bytes);
	position_ask(s->fd);
}

void stream_write_begin(struct stream_op *s, FILE *f)
{
	s->op.t = NULL;
	s->fd = f->_fileno;
	if (f->_mode > 0 || !is_followed(s->fd))
		return;
	s->file = f;
	s->at = waiting(f);
	write_begin(&s->op, s->fd);
}

void stream_write_end(struct stream_op *s, size_t bytes)
{
	write_count(&s->op, waiting(s->file) != s->at + (int64_t)bytes, bytes);
	position_ask(s->fd);
}

void stream_seek_begin(struct stream_op *s, FILE *f, int whence)
{
	s->op.t = NULL;
	s->fd = f->_fileno;
	if (f->_mode > 0 || f->_flags & NO_READS || !is_followed(s->fd))
		return;
	s->file = f;
	s->at = f->_offset;
	s->end = f->_flags & IN_BACKUP ? f->_IO_save_end : f->_IO_read_end;
	if (waiting(f)) { /* will be written first: the buffer is empty */
		s->end = f->_IO_buf_base;
		s->at = f->_flags & APPENDING ? -1 : s->at;
	}
	s->relative = whence == SEEK_CUR && s->at < 0;
	read_begin(&s->op, s->fd, 1);
}

/* The read of a seek that left the buffer empty; -1: there was none. */
static long read_to_end(const struct stream_op *s, int64_t *from)
{
	int64_t room = s->file->_IO_buf_end - s->file->_IO_buf_base, to = s->file->_offset;
	struct stat st;

	*from = to & ~(room - 1);
	if (s->relative || *from == to || to - *from > room || SYS2(SYS_fstat, s->fd, &st) < 0 ||
	    st.st_size >= to)
		return -1;
	return st.st_size > *from ? st.st_size - *from : 0;
}

void stream_seek_end(struct stream_op *s, int failed)
{
	const FILE *f = s->file;
	int64_t bytes = f->_IO_read_end - f->_IO_read_base, from = f->_offset - bytes;

	if (failed)
		bytes = -1;
	else if (!bytes)
		bytes = read_to_end(s, &from);
	else if (s->at == f->_offset && s->end == f->_IO_read_end)
		bytes = -1; /* the target was in the buffer */
	read_end(&s->op, s->fd, from, bytes);
	position_ask(s->fd);
}
