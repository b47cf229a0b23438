/* SPDX-License-Identifier: BSD-3-Clause */
/* unpack.c - reading msgpack from hostile bytes (pack.h). */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/pack.h"

static uint64_t big_endian(const unsigned char *p, size_t n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

/*
 * Types 0xc0-0xdf. 'f': body of n bytes; n bytes that say how many 'b' bytes, 'e' bytes and a type,
 * 'a' items or 'm' pairs follow; 'x': never used.
 */
static const struct {
	char kind;
	unsigned char n;
} wide[32] = {
	{'f', 0},  {'x', 0}, {'f', 0}, {'f', 0}, {'b', 1}, {'b', 2}, {'b', 4}, {'e', 1},
	{'e', 2},  {'e', 4}, {'f', 4}, {'f', 8}, {'f', 1}, {'f', 2}, {'f', 4}, {'f', 8},
	{'f', 1},  {'f', 2}, {'f', 4}, {'f', 8}, {'f', 2}, {'f', 3}, {'f', 5}, {'f', 9},
	{'f', 17}, {'b', 1}, {'b', 2}, {'b', 4}, {'a', 2}, {'a', 4}, {'m', 2}, {'m', 4},
};

/* Reads the head of one value; bytes it takes without its items, or -EBADMSG. */
static int64_t item_head(const unsigned char *p, size_t n, uint64_t *items)
{
	unsigned char c = *p;
	uint64_t used = 1;
	uint64_t count;

	*items = 0;
	if (c < 0x80 || c >= 0xe0)
		return 1;
	if (c < 0xa0) {
		*items = c < 0x90 ? 2u * (c & 15u) : c & 15u;
		return 1;
	}
	if (c < 0xc0) {
		used += c & 31u;
	} else if (wide[c - 0xc0].kind == 'x') {
		return -EBADMSG;
	} else if (wide[c - 0xc0].kind == 'f') {
		used += wide[c - 0xc0].n;
	} else {
		used += wide[c - 0xc0].n;
		if (used > n)
			return -EBADMSG;
		count = big_endian(p + 1, wide[c - 0xc0].n);
		switch (wide[c - 0xc0].kind) {
		case 'a':
			*items = count;
			break;
		case 'm':
			*items = 2 * count;
			break;
		case 'e':
			used += count + 1;
			break;
		default:
			used += count;
		}
	}
	return used > n ? -EBADMSG : (int64_t)used;
}

int unpack_count(const void *p, size_t n, size_t *values)
{
	const unsigned char *at = p;
	uint64_t open[PACK_DEPTH_MAX + 1];
	uint64_t items;
	int64_t used;
	size_t depth = 0;

	*values = 0;
	for (;;) {
		while (depth && open[depth] == 0)
			depth--;
		if (n == 0)
			return depth ? -EBADMSG : 0;
		used = item_head(at, n, &items);
		if (used < 0)
			return -EBADMSG;
		at += used;
		n -= (size_t)used;
		if (depth)
			open[depth]--;
		else
			++*values;
		/* Each item takes a byte at least, so a count is never more than what is left. */
		if (items > n || (items && depth == PACK_DEPTH_MAX))
			return -EBADMSG;
		if (items)
			open[++depth] = items;
	}
}

int unpack_check(const void *p, size_t n)
{
	size_t values;
	int rc = unpack_count(p, n, &values);

	return rc ? rc : values == 1 ? 0 : -EBADMSG;
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
