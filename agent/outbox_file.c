/* SPDX-License-Identifier: BSD-3-Clause */
/* outbox_file.c - the outbox's file, and the order in which frames are sent (outbox.h). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "agent/outbox.h"
#include "common/clock.h"
#include "common/dirs.h"

int outbox_open_file(struct outbox *o)
{
	int rc = -EEXIST;

	if (!o->dir[0])
		return -ENOENT;
	rc = dirs_make_own(o->dir);
	if (rc)
		return rc;
	rc = framefile_create(&o->file, o->dir, "spool", clock_real_ns(), o->worker);
	if (rc)
		return rc;
	/* The lock says that its writer lives: nobody else sends this file. */
	flock(o->file.fd, LOCK_EX | LOCK_NB);
	if (o->hello.len)
		rc = framefile_append(&o->file, o->hello.data, o->hello.len);
	if (rc) {
		unlink(o->file.path);
		framefile_close(&o->file);
	}
	return rc;
}

void outbox_sync(struct outbox *o)
{
	if (o->file.fd >= 0 && o->file_dirty && framefile_sync(&o->file) == 0)
		o->file_dirty = false;
}

int outbox_hello(struct outbox *o, const void *frame, size_t bytes)
{
	buf_clear(&o->hello);
	if (buf_add(&o->hello, frame, bytes))
		return o->hello.error;
	if (o->file.fd < 0)
		return 0;
	o->file_dirty = true;
	return framefile_append(&o->file, frame, bytes);
}

void outbox_rewind(struct outbox *o, uint64_t seq)
{
	framefile_reader_close(&o->reader);
	o->reading = false;
	o->sent_seq = 0;
	if (seq <= o->next_seq) {
		outbox_acked(o, seq);
		o->sent_seq = seq;
	}
	/* What was on its way on the last connection and is not there was lost with it. */
	for (const struct outbox_doubt *d = o->doubt; d; d = d->next)
		o->dropped += d->count;
	outbox_settle_doubt(o, UINT64_MAX);
}

/* The next frame of the file that the other side does not have: 1, 0, -errno. */
static int next_of_file(struct outbox *o, const unsigned char **p, size_t *bytes)
{
	struct frame f;
	int rc, fd;

	if (o->is_destination || o->file.fd < 0 || o->sent_seq >= o->file_end_seq)
		return 0;
	if (!o->reading) {
		/* Not by its name, which somebody may have removed. */
		fd = fcntl(o->file.fd, F_DUPFD_CLOEXEC, 0);
		if (fd < 0)
			return -errno;
		framefile_open_fd(&o->reader, fd);
		o->reading = true;
	}
	while ((rc = framefile_next(&o->reader, &f)) > 0) {
		uint64_t end = f.head.first_seq + f.head.count;

		if (f.head.type != CREMA_FRAME_DATA || f.head.stream != o->stream ||
		    end <= o->sent_seq)
			continue;
		*p = framefile_verbatim(&o->reader, &f, bytes);
		o->sent_seq = end;
		return 1;
	}
	/* Its end was reached (the rest was dropped or damaged): what memory holds comes next. */
	if (rc == 0 && o->sent_seq < o->file_end_seq)
		o->sent_seq = o->file_end_seq;
	return rc;
}

int outbox_next(struct outbox *o, const unsigned char **p, size_t *bytes)
{
	int rc = next_of_file(o, p, bytes);

	if (rc)
		return rc;
	if (o->is_destination)
		return 0;
	for (struct outbox_frame *f = o->head; f; f = f->next) {
		if (f->first_seq + f->count <= o->sent_seq)
			continue;
		*p = f->data;
		*bytes = f->bytes;
		o->sent_seq = f->first_seq + f->count;
		return 1;
	}
	return 0;
}
