/* SPDX-License-Identifier: BSD-3-Clause */
/* framefile_read.c - reads files of frames, including damaged ones (framefile.h). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/framefile.h"
#include "common/pack.h"

#define READ_STEP (64u << 10)

int framefile_open_fd(struct framefile_reader *r, int fd)
{
	memset(r, 0, sizeof(*r));
	r->fd = fd;
	r->stats.first_bad_offset = -1;
	r->stats.no_header = true;
	return 0;
}

int framefile_open(struct framefile_reader *r, const char *path)
{
	/* Does not wait for a writer if the name is that of a pipe. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	memset(r, 0, sizeof(*r));
	r->fd = -1;
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		st.st_mode = 0;
	if (S_ISREG(st.st_mode))
		return framefile_open_fd(r, fd);
	close(fd);
	return S_ISDIR(st.st_mode) ? -EISDIR : -EMEDIUMTYPE;
}

void framefile_reader_close(struct framefile_reader *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
	buf_release(&r->window);
}

/* Reads more after the window: bytes read, 0 = end, -errno. */
static ssize_t fill(struct framefile_reader *r)
{
	uint64_t from;
	ssize_t n;

	r->offset += r->at;
	buf_consume(&r->window, r->at);
	r->at = 0;
	if (buf_reserve(&r->window, READ_STEP))
		return r->window.error;
	from = r->offset + r->window.len;
	do
		n = pread(r->fd, r->window.data + r->window.len, READ_STEP, (off_t)from);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	r->window.len += (size_t)n;
	r->stats.bytes += (uint64_t)n;
	return n;
}

static void skip(struct framefile_reader *r, size_t n)
{
	if (r->stats.first_bad_offset < 0)
		r->stats.first_bad_offset = (int64_t)(r->offset + r->at);
	r->stats.bytes_skipped += n;
	r->at += n;
}

static void skip_to_magic(struct framefile_reader *r)
{
	size_t left = r->window.len - r->at;
	const unsigned char *at = r->window.data + r->at;
	const unsigned char *next = left > 1 ? memchr(at + 1, 'C', left - 1) : NULL;

	skip(r, next ? (size_t)(next - at) : left);
}

/*
 * The rest of the file begins like a frame but is incomplete. A frame that is cut in the middle of
 * the file (with good ones after it) looks the same if its length reaches beyond the end, so all
 * later offsets are tried too; the tail is torn if none of them decodes.
 */
static ssize_t resync_tail(struct framefile_reader *r, struct frame *f)
{
	for (size_t i = r->at + 1; i < r->window.len; i++) {
		ssize_t used;

		if (r->window.data[i] != 'C')
			continue;
		used = frame_decode(f, r->window.data + i, r->window.len - i);
		if (used > 0) {
			skip(r, i - r->at);
			return used;
		}
	}
	return 0;
}

/* The format in a file's header; 0: none. -ENOMEM is not about the file. */
static int format_of(const struct frame *f, uint64_t *format)
{
	struct buf scratch = BUF_INIT;
	struct unpack u;
	int rc = unpack_frame(&u, f, &scratch);

	*format = 0;
	if (!rc) {
		*format = get_u64(&u.root, "format", 0);
		unpack_release(&u);
	}
	buf_release(&scratch);
	return rc == -ENOMEM ? rc : 0;
}

/* 1: f is a frame to return, 0: it was a file header; -ENOMEM: to be tried again. */
static int accept_frame(struct framefile_reader *r, struct frame *f, size_t used)
{
	uint64_t format;
	int rc;

	if (f->head.type != CREMA_FRAME_FILE_HEADER) {
		r->at += used;
		r->stats.frames++;
		return 1;
	}
	if (r->offset + r->at == 0) {
		rc = format_of(f, &format);
		if (rc)
			return rc;
		r->stats.no_header = format == 0 || format < CREMA_FILE_FORMAT;
		r->stats.newer = r->ended = format > CREMA_FILE_FORMAT;
	}
	r->at += used;
	return 0;
}

int framefile_next(struct framefile_reader *r, struct frame *f)
{
	ssize_t used, got;

	r->stats.truncated = false;
	while (!r->ended) {
		used = -EAGAIN;
		if (r->at < r->window.len)
			used = frame_decode(f, r->window.data + r->at, r->window.len - r->at);
		if (used == -EAGAIN) {
			got = fill(r);
			if (got < 0)
				return (int)got;
			if (got > 0)
				continue;
			if (r->window.len == 0)
				return 0;
			used = resync_tail(r, f);
			if (used == 0) {
				r->stats.truncated = true;
				return 0;
			}
		}
		if (used > 0) {
			int rc = accept_frame(r, f, (size_t)used);

			if (rc)
				return rc;
			continue;
		}
		if (used == -EPROTONOSUPPORT)
			r->stats.newer = true;
		skip_to_magic(r);
	}
	return 0;
}

const unsigned char *framefile_verbatim(const struct framefile_reader *r, const struct frame *f,
					size_t *bytes)
{
	(void)r;
	*bytes = FRAME_HEAD_BYTES + f->head.stored_bytes;
	return f->stored - FRAME_HEAD_BYTES;
}

int framefile_read(const char *path,
		   int (*visit)(void *arg, const struct crema_frame_header *head,
				const unsigned char *raw, size_t raw_bytes),
		   void *arg, struct framefile_stats *stats)
{
	struct framefile_reader r;
	struct buf scratch = BUF_INIT;
	const unsigned char *raw;
	struct frame f;
	int rc = framefile_open(&r, path);

	if (rc)
		return rc;
	while ((rc = framefile_next(&r, &f)) > 0) {
		rc = frame_payload(&f, &scratch, &raw);
		if (rc == -EBADMSG) {
			size_t n = FRAME_HEAD_BYTES + f.head.stored_bytes;

			r.stats.frames--;
			r.stats.bytes_skipped += n;
			if (r.stats.first_bad_offset < 0)
				r.stats.first_bad_offset = (int64_t)(r.offset + r.at - n);
			continue;
		}
		r.stats.end = r.offset + r.at;
		if (stats)
			*stats = r.stats;
		if (!rc)
			rc = visit(arg, &f.head, raw, f.head.raw_bytes);
		if (rc)
			break;
	}
	if (!rc && r.stats.truncated) {
		if (r.stats.first_bad_offset < 0)
			r.stats.first_bad_offset = (int64_t)(r.offset + r.at);
		r.stats.bytes_skipped += r.window.len - r.at;
	}
	if (stats)
		*stats = r.stats;
	buf_release(&scratch);
	framefile_reader_close(&r);
	return rc;
}

int framefile_read_part(const char *path, uint64_t from, uint64_t to, uint64_t frames,
			int (*visit)(void *arg, const struct crema_frame_header *head,
				     const unsigned char *raw, size_t raw_bytes),
			void *arg)
{
	struct framefile_reader r;
	struct buf scratch = BUF_INIT;
	const unsigned char *raw;
	struct frame f;
	int rc = framefile_open(&r, path);

	if (rc)
		return rc;
	r.offset = from;
	while (!rc && r.stats.frames < frames) {
		rc = framefile_next(&r, &f);
		if (rc > 0 && !r.stats.bytes_skipped && r.offset + r.at <= to)
			rc = frame_payload(&f, &scratch, &raw);
		else
			rc = rc < 0 ? rc : -EBADMSG;
		if (!rc)
			rc = visit(arg, &f.head, raw, f.head.raw_bytes);
	}
	if (!rc && r.offset + r.at != to)
		rc = -EBADMSG;
	buf_release(&scratch);
	framefile_reader_close(&r);
	return rc;
}
