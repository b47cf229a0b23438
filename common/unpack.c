/* SPDX-License-Identifier: BSD-3-Clause */
/* unpack.c - reads msgpack from hostile bytes (pack.h). */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/frame.h"
#include "common/pack.h"
#include "common/walk.h"

int unpack_count(const void *p, size_t n, size_t *values)
{
	const uint8_t *at = p;
	int64_t used;

	for (*values = 0; n; ++*values) {
		used = walk_values(at, n, 1, WALK_DEPTH_MAX);
		if (used < 0)
			return -EBADMSG;
		at += used;
		n -= (size_t)used;
	}
	return 0;
}

int unpack_check(const void *p, size_t n)
{
	return walk_values(p, n, 1, WALK_DEPTH_MAX) == (int64_t)n ? 0 : -EBADMSG;
}

int unpack_open(struct unpack *u, const void *p, size_t n)
{
	size_t off = 0;
	int rc = unpack_check(p, n);

	if (rc)
		return rc;
	u->zone = msgpack_zone_new(2048);
	if (!u->zone)
		return -ENOMEM;
	rc = msgpack_unpack(p, n, &off, u->zone, &u->root);
	if (rc == MSGPACK_UNPACK_SUCCESS)
		return 0;
	msgpack_zone_free(u->zone);
	u->zone = NULL;
	return rc == MSGPACK_UNPACK_NOMEM_ERROR ? -ENOMEM : -EBADMSG;
}

int unpack_frame(struct unpack *u, const struct frame *f, struct buf *scratch)
{
	const unsigned char *raw;
	int rc = frame_payload(f, scratch, &raw);

	return rc ? rc : unpack_open(u, raw, f->head.raw_bytes);
}

int unpack_next(struct unpack *u, const void *p, size_t n, size_t *used)
{
	int rc;

	if (u->zone)
		msgpack_zone_clear(u->zone);
	else
		u->zone = msgpack_zone_new(2048);
	if (!u->zone)
		return -ENOMEM;
	*used = 0;
	rc = msgpack_unpack(p, n, used, u->zone, &u->root);
	if (rc == MSGPACK_UNPACK_SUCCESS || rc == MSGPACK_UNPACK_EXTRA_BYTES)
		return 0;
	return rc == MSGPACK_UNPACK_NOMEM_ERROR ? -ENOMEM : -EBADMSG;
}

int unpack_array(const void *p, size_t n, uint32_t *items, size_t *used)
{
	struct walk_item item;

	if (!walk_item(p, n, &item) || item.kind != WALK_ARRAY)
		return -EBADMSG;
	*items = (uint32_t)item.number;
	*used = item.bytes;
	return 0;
}

void unpack_release(struct unpack *u)
{
	if (u->zone)
		msgpack_zone_free(u->zone);
	u->zone = NULL;
}

bool is_nil(const msgpack_object *o)
{
	return !o || o->type == MSGPACK_OBJECT_NIL;
}

static bool object_is_float(const msgpack_object *o)
{
	return o->type == MSGPACK_OBJECT_FLOAT64 || o->type == MSGPACK_OBJECT_FLOAT32;
}

bool object_u64(const msgpack_object *o, uint64_t *out)
{
	if (!o)
		return false;
	if (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER) {
		*out = o->via.u64;
		return true;
	}
	if (object_is_float(o) && o->via.f64 >= 0 && o->via.f64 < 0x1p64 &&
	    o->via.f64 == floor(o->via.f64)) {
		*out = (uint64_t)o->via.f64;
		return true;
	}
	return false;
}

bool object_i64(const msgpack_object *o, int64_t *out)
{
	uint64_t v;

	if (o && o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER) {
		*out = o->via.i64;
		return true;
	}
	if (object_u64(o, &v) && v <= INT64_MAX) {
		*out = (int64_t)v;
		return true;
	}
	if (o && object_is_float(o) && o->via.f64 >= -0x1p63 && o->via.f64 < 0 &&
	    o->via.f64 == floor(o->via.f64)) {
		*out = (int64_t)o->via.f64;
		return true;
	}
	return false;
}

bool object_f64(const msgpack_object *o, double *out)
{
	if (!o)
		return false;
	if (object_is_float(o))
		*out = o->via.f64;
	else if (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
		*out = (double)o->via.u64;
	else if (o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
		*out = (double)o->via.i64;
	else
		return false;
	return true;
}

bool object_text(const msgpack_object *o, struct text *out)
{
	if (!o || o->type != MSGPACK_OBJECT_STR)
		return false;
	*out = (struct text){o->via.str.size ? o->via.str.ptr : "", o->via.str.size};
	return true;
}

bool object_bin(const msgpack_object *o, struct text *out)
{
	if (!o || o->type != MSGPACK_OBJECT_BIN)
		return object_text(o, out);
	*out = (struct text){o->via.bin.size ? o->via.bin.ptr : "", o->via.bin.size};
	return true;
}
