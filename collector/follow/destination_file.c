/* SPDX-License-Identifier: BSD-3-Clause */
/* destination_file.c - a file of lines, which shows what it has; standard output and pipes. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/follow/destination.h"

#define READ_STEP (64u << 10)
#define LINE_MAX_BYTES (64u << 20) /* a frame's 4 MiB, with each byte escaped */

static const char begins[] = "{\"id\": \"";

/* The position after the last '\n' before `end`; 0: there is none. */
static int64_t line_start(int fd, uint64_t end, struct buf *scratch)
{
	uint64_t from;
	size_t n;
	const unsigned char *at;

	while (end) {
		n = end < READ_STEP ? (size_t)end : READ_STEP;
		from = end - n;
		buf_clear(scratch);
		if (buf_reserve(scratch, n) ||
		    pread(fd, scratch->data, n, (off_t)from) != (ssize_t)n)
			return -EIO;
		at = memrchr(scratch->data, '\n', n);
		if (at)
			return (int64_t)(from + (size_t)(at - scratch->data) + 1);
		end = from;
	}
	return 0;
}

/* From the line [from, to) of the file. */
static int take_last(struct destination *d, uint64_t from, uint64_t to)
{
	struct buf line = BUF_INIT;
	int rc;

	if (to - from > LINE_MAX_BYTES || buf_reserve(&line, (size_t)(to - from)) ||
	    pread(d->fd, line.data, (size_t)(to - from), (off_t)from) != (ssize_t)(to - from))
		rc = destination_fail(d, EIO, "cannot read its last line");
	else
		rc = destination_take_line(d, (const char *)line.data, (size_t)(to - from));
	buf_release(&line);
	return rc;
}

/* Only half a line that this program wrote may be cut off. */
static int cut(struct destination *d, uint64_t end, uint64_t size)
{
	char head[sizeof(begins) - 1];
	size_t n = size - end < sizeof(head) ? (size_t)(size - end) : sizeof(head);

	if (size == end)
		return 0;
	if (pread(d->fd, head, n, (off_t)end) != (ssize_t)n || memcmp(head, begins, n) != 0)
		return destination_fail(d, 0,
					"it ends with half a line that 'crema follow' did "
					"not write: give a new file");
	return ftruncate(d->fd, (off_t)end)
		       ? destination_fail(d, errno, "cannot cut off half a line")
		       : 0;
}

static int resume(struct destination *d, uint64_t size)
{
	struct buf scratch = BUF_INIT;
	int64_t end = line_start(d->fd, size, &scratch);
	int64_t from = end > 0 ? line_start(d->fd, (uint64_t)end - 1, &scratch) : end;
	int rc = from < 0 ? destination_fail(d, EIO, "cannot read") : 0;

	buf_release(&scratch);
	if (!rc && end > 0)
		rc = take_last(d, (uint64_t)from, (uint64_t)end);
	if (!rc)
		rc = cut(d, (uint64_t)end, size);
	if (!rc && lseek(d->fd, end, SEEK_SET) < 0)
		rc = destination_fail(d, errno, "cannot write");
	return rc;
}

static int file_open(struct destination *d)
{
	struct stat st;

	if (!strcmp(d->name, "-")) {
		d->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
		return d->fd < 0 ? destination_fail(d, errno, "cannot write") : 0;
	}
	d->fd = open(d->name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
	if (d->fd < 0 && (errno == ENXIO || errno == EACCES)) /* write-only */
		d->fd = open(d->name, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (d->fd < 0 || fstat(d->fd, &st))
		return destination_fail(d, errno, "cannot open it");
	if (!S_ISREG(st.st_mode))
		return 0;
	if (st.st_uid != geteuid())
		return destination_fail(d, 0, "it belongs to another user");
	if (flock(d->fd, LOCK_EX | LOCK_NB))
		return destination_fail(d, errno == EWOULDBLOCK ? EBUSY : errno,
					"another program writes it");
	return resume(d, (uint64_t)st.st_size);
}

static int file_settle(struct destination *d)
{
	int rc = destination_write(d);

	if (!rc && fdatasync(d->fd) && errno != EINVAL && errno != EROFS)
		rc = destination_fail(d, errno, "cannot write");
	return rc;
}

const struct destination_kind destination_file = {
	.open = file_open, .settle = file_settle, .hold_bytes = 256u << 10};
