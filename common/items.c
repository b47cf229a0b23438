/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * items.c - see items.h. The frames are not compressed: agents wait while a checkpoint is made, 25
 * ms with 10,000 workers and 340 with zlib.
 */
#include "common/items.h"

#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "common/framefile.h"
#include "ids.h"

#define PART_BYTES (256u << 10) /* from this size on the next item begins another frame */
#define COUNT_BYTES 5u		/* array 32 and its length, which is known at the end */

void items_begin(struct items *c, struct buf *out, uint8_t type)
{
	*c = (struct items){.out = out, .type = type, .id = clock_real_ns()};
}

static void close_part(struct items *c, bool last)
{
	struct crema_frame_header head = frame_head(c->type, NULL, c->id);
	int err = c->body.error;

	head.first_seq = c->parts++;
	head.count = last;
	if (!err) {
		c->body.data[0] = 0xdd;
		for (unsigned int i = 0; i < 4; i++)
			c->body.data[1 + i] = (unsigned char)(c->items >> (24 - 8 * i));
		err = frame_encode_stored(c->out, &head, c->body.data, c->body.len);
	}
	if (err && !c->error)
		c->error = err;
	buf_clear(&c->body);
	c->items = 0;
}

msgpack_packer *items_add(struct items *c, unsigned int kind, size_t values)
{
	static const unsigned char count[COUNT_BYTES];

	if (c->body.len >= PART_BYTES)
		close_part(c, false);
	if (!c->body.len)
		buf_add(&c->body, count, sizeof(count));
	c->items++;
	pack_init(&c->pk, &c->body);
	pack_array(&c->pk, 1 + values);
	pack_u64(&c->pk, kind);
	return &c->pk;
}

int items_end(struct items *c)
{
	close_part(c, true);
	buf_release(&c->body);
	return c->error ? c->error : (int)c->parts;
}

/* Reading */

/* The next frame, if it is part `at` of the items `id` (any, for part 0). */
static bool next_part(struct framefile_reader *r, uint8_t type, struct frame *f, uint64_t at,
		      uint64_t *id)
{
	if (framefile_next(r, f) <= 0 || f->head.type != type || f->head.first_seq != at ||
	    (at && f->head.stream != *id))
		return false;
	*id = f->head.stream;
	return true;
}

/* True if all frames are there. */
static bool is_whole(const char *path, uint8_t type, uint64_t *bytes)
{
	struct framefile_reader r;
	uint64_t at = 0, id = 0;
	bool last = false;
	struct frame f;

	if (framefile_open(&r, path))
		return false;
	*bytes = 0;
	while (!last && next_part(&r, type, &f, at, &id)) {
		last = f.head.count != 0;
		at++;
		*bytes += FRAME_HEAD_BYTES + f.head.stored_bytes;
	}
	framefile_reader_close(&r);
	return last;
}

static int take_part(const struct frame *f, struct buf *scratch,
		     int (*take)(void *arg, const msgpack_object_array *item), void *arg)
{
	struct unpack u;
	uint32_t i;
	int err = unpack_frame(&u, f, scratch);

	if (err)
		return err;
	if (u.root.type != MSGPACK_OBJECT_ARRAY)
		err = -EBADMSG;
	for (i = 0; !err && i < u.root.via.array.size; i++) {
		const msgpack_object *item = &u.root.via.array.ptr[i];

		err = item->type == MSGPACK_OBJECT_ARRAY ? take(arg, &item->via.array) : -EBADMSG;
	}
	unpack_release(&u);
	return err;
}

int items_read_whole(const char *path, uint8_t type,
		     int (*take)(void *arg, const msgpack_object_array *item), void *arg)
{
	struct buf scratch = BUF_INIT;
	struct framefile_reader r;
	uint64_t at = 0, id = 0;
	bool last = false;
	struct frame f;
	int err;

	err = framefile_open(&r, path);
	if (err)
		return err;
	for (; !err && !last; at++) {
		if (!next_part(&r, type, &f, at, &id)) {
			err = -EIO;
			break;
		}
		last = f.head.count != 0;
		err = take_part(&f, &scratch, take, arg);
	}
	framefile_reader_close(&r);
	buf_release(&scratch);
	return err;
}

int items_read(const char *path, uint8_t type,
	       int (*take)(void *arg, const msgpack_object_array *item), void *arg, uint64_t *bytes)
{
	return is_whole(path, type, bytes) ? items_read_whole(path, type, take, arg) : -ENOENT;
}

bool items_u64(const msgpack_object_array *item, uint32_t at, uint64_t *value)
{
	return at < item->size && object_u64(&item->ptr[at], value);
}

const uint8_t *items_id(const msgpack_object_array *item, uint32_t at)
{
	struct text id;

	if (at >= item->size || !object_bin(&item->ptr[at], &id) || id.len != CREMA_WORKER_ID_BYTES)
		return NULL;
	return (const uint8_t *)id.ptr;
}
