/* SPDX-License-Identifier: BSD-3-Clause */
/* outbox.c - batches, frames in memory and in the file, what is safe, and the order of sending. */
#include "agent/outbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/dirs.h"

static void settle_doubt(struct outbox *o, uint64_t seq)
{
	while (o->doubt && o->doubt->end_seq <= seq) {
		struct outbox_doubt *d = o->doubt;

		o->doubt = d->next;
		free(d);
	}
	if (!o->doubt)
		o->doubt_end = &o->doubt;
}

void outbox_init(struct outbox *o, const uint8_t *worker, uint64_t stream, const char *dir,
		 bool destination)
{
	memset(o, 0, sizeof(*o));
	memcpy(o->worker, worker, sizeof(o->worker));
	o->stream = stream;
	o->is_destination = destination;
	o->memory_max = OUTBOX_MEMORY_MAX;
	o->spool_max = destination ? UINT64_MAX : OUTBOX_SPOOL_BYTES;
	snprintf(o->dir, sizeof(o->dir), "%s", dir ? dir : "");
	o->file.fd = -1;
	o->reader.fd = -1;
	o->doubt_end = &o->doubt;
	for (int i = 0; i < OUTBOX_CLASSES; i++)
		pack_init(&o->batch[i].pk, &o->batch[i].body);
}

void outbox_release(struct outbox *o)
{
	while (o->head) {
		struct outbox_frame *f = o->head;

		o->head = f->next;
		free(f);
	}
	settle_doubt(o, UINT64_MAX);
	for (int i = 0; i < OUTBOX_CLASSES; i++)
		buf_release(&o->batch[i].body);
	buf_release(&o->scratch);
	buf_release(&o->hello);
	framefile_close(&o->file);
	framefile_reader_close(&o->reader);
}

/* The payload is array 32 (its count is filled in at the end), then the messages. */
msgpack_packer *outbox_begin(struct outbox *o, enum outbox_class class)
{
	struct batch *b = &o->batch[class];

	if (b->body.len >= OUTBOX_FRAME_RAW)
		outbox_flush(o);
	if (b->body.len == 0)
		buf_add(&b->body, "\xdd\0\0\0\0", 5);
	return &b->pk;
}

uint64_t outbox_end(struct outbox *o, enum outbox_class class)
{
	o->batch[class].count++;
	return class == OUTBOX_RECORD ? ++o->tickets : o->tickets;
}

msgpack_packer *outbox_begin_map(struct outbox *o, enum outbox_class class, unsigned int type)
{
	msgpack_packer *pk = outbox_begin(o, class);

	pack_array(pk, 2);
	pack_u64(pk, type);
	o->batch[class].map = pack_map_begin(pk);
	return pk;
}

uint64_t outbox_end_map(struct outbox *o, enum outbox_class class)
{
	pack_map_end(&o->batch[class].pk, o->batch[class].map);
	return outbox_end(o, class);
}

bool outbox_is_safe(const struct outbox *o, uint64_t ticket)
{
	return ticket <= o->tickets_safe;
}

static void push(struct outbox *o, struct outbox_frame *f)
{
	f->next = NULL;
	if (o->tail)
		o->tail->next = f;
	else
		o->head = f;
	o->tail = f;
	o->memory += f->bytes;
}

static void pop(struct outbox *o)
{
	struct outbox_frame *f = o->head;

	o->head = f->next;
	if (!o->head)
		o->tail = NULL;
	o->memory -= f->bytes;
	if (f->tickets > o->tickets_safe)
		o->tickets_safe = f->tickets;
	free(f);
}

static void flush_batch(struct outbox *o, enum outbox_class class)
{
	struct crema_frame_header head = frame_head(CREMA_FRAME_DATA, o->worker, o->stream);
	struct batch *b = &o->batch[class];
	struct outbox_frame *f = NULL;

	if (b->count == 0)
		return;
	buf_clear(&o->scratch);
	head.first_seq = o->next_seq;
	head.count = b->count;
	for (int i = 0; i < 4 && !b->body.error; i++)
		b->body.data[1 + i] = (unsigned char)(b->count >> (24 - 8 * i));
	if (!b->body.error && frame_encode(&o->scratch, &head, b->body.data, b->body.len) == 0)
		f = malloc(sizeof(*f) + o->scratch.len);
	if (f) {
		f->first_seq = head.first_seq;
		f->count = head.count;
		f->tickets = o->tickets;
		f->born_ns = clock_mono_ns();
		f->light = class == OUTBOX_LIGHT;
		f->bytes = o->scratch.len;
		memcpy(f->data, o->scratch.data, f->bytes);
		push(o, f);
		o->next_seq += b->count;
	} else {
		o->dropped += b->count; /* out of memory, or one message beyond a frame's limit */
		if (!o->head)
			o->tickets_safe = o->tickets;
	}
	b->count = 0;
	buf_clear(&b->body);
	/* A large message was an exception: do not keep its memory. */
	if (b->body.cap > 4 * OUTBOX_FRAME_RAW)
		buf_release(&b->body);
	if (o->scratch.cap > 4 * OUTBOX_FRAME_RAW)
		buf_release(&o->scratch);
}

void outbox_flush(struct outbox *o)
{
	/* Records first: a light frame's ticket count then covers them, in order. */
	flush_batch(o, OUTBOX_RECORD);
	flush_batch(o, OUTBOX_LIGHT);
}

/* The frame is not kept any more. */
static void give_up(struct outbox *o, const struct outbox_frame *f)
{
	uint64_t end = f->first_seq + f->count;
	struct outbox_doubt *d = end <= o->sent_seq ? malloc(sizeof(*d)) : NULL;

	if (!d) {
		o->dropped += f->count;
		return;
	}
	*d = (struct outbox_doubt){NULL, end, f->count};
	*o->doubt_end = d;
	o->doubt_end = &d->next;
}

/* Drops light frames first, then the oldest. */
static void drop(struct outbox *o, size_t keep)
{
	struct outbox_frame **at = &o->head, *last = NULL;

	while (*at && o->memory > keep) {
		struct outbox_frame *f = *at;

		if (!f->light) {
			last = f;
			at = &f->next;
			continue;
		}
		*at = f->next;
		o->memory -= f->bytes;
		give_up(o, f);
		if (o->tail == f)
			o->tail = last;
		free(f);
	}
	while (o->head && o->memory > keep) {
		give_up(o, o->head);
		pop(o);
	}
}

static int open_file(struct outbox *o)
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
	/* The lock shows that its writer lives: no other agent sends this file. */
	flock(o->file.fd, LOCK_EX | LOCK_NB);
	if (o->hello.len)
		rc = framefile_append(&o->file, o->hello.data, o->hello.len);
	if (rc) {
		unlink(o->file.path);
		framefile_close(&o->file);
	}
	return rc;
}

static int spill_one(struct outbox *o, const struct outbox_frame *f)
{
	int rc;

	if (o->file.size + f->bytes > (f->light ? o->spool_max / 2 : o->spool_max) && !o->is_last) {
		give_up(o, f);
		return 0;
	}
	rc = framefile_append(&o->file, f->data, f->bytes);
	if (rc)
		return rc;
	o->file_dirty = true;
	o->file_end_seq = f->first_seq + f->count;
	return 0;
}

int outbox_spill(struct outbox *o)
{
	int rc = 0;

	if (!o->head)
		return 0;
	if (o->file.fd < 0)
		rc = open_file(o);
	while (!rc && o->head) {
		rc = spill_one(o, o->head);
		if (!rc)
			pop(o);
	}
	o->file_error = rc;
	if (rc && o->memory > o->memory_max)
		drop(o, o->memory_max / 2);
	return rc;
}

void outbox_acked(struct outbox *o, uint64_t seq)
{
	if (seq > o->next_seq)
		seq = o->next_seq; /* an acknowledgement of something never sent */
	if (seq > o->acked_seq)
		o->acked_seq = seq;
	settle_doubt(o, o->acked_seq);
	while (o->head && o->head->first_seq + o->head->count <= o->acked_seq)
		pop(o);
	if (o->is_destination || o->file.fd < 0 || o->acked_seq < o->file_end_seq)
		return;
	unlink(o->file.path);
	framefile_close(&o->file);
	framefile_reader_close(&o->reader);
	o->reading = false;
}

bool outbox_is_empty(const struct outbox *o)
{
	return !o->head && !o->batch[0].count && !o->batch[1].count &&
	       (o->is_destination || o->file.fd < 0);
}

uint64_t outbox_age(const struct outbox *o, uint64_t now_mono)
{
	return o->head && now_mono > o->head->born_ns ? now_mono - o->head->born_ns : 0;
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
	/* What was sent on the last connection and is not there was lost with it. */
	for (const struct outbox_doubt *d = o->doubt; d; d = d->next)
		o->dropped += d->count;
	settle_doubt(o, UINT64_MAX);
}

/* The next frame of the file that the other side does not have: 1, 0, -errno. */
static int next_of_file(struct outbox *o, const unsigned char **p, size_t *bytes)
{
	struct frame f;
	int rc, fd;

	if (o->is_destination || o->file.fd < 0 || o->sent_seq >= o->file_end_seq)
		return 0;
	if (!o->reading) {
		/* Not by its name: the file may have been removed. */
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
	/* Its end was reached (the rest was dropped or damaged): continue with what memory
	 * holds. */
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
