/* SPDX-License-Identifier: BSD-3-Clause */
/* pack.c - writes msgpack into a struct buf. */
#include "common/pack.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static int write_buf(void *data, const char *p, size_t n)
{
	return buf_add(data, p, n);
}

void pack_init(msgpack_packer *pk, struct buf *out)
{
	msgpack_packer_init(pk, out, write_buf);
}

size_t pack_map_begin(msgpack_packer *pk)
{
	struct buf *b = pk->data;

	buf_add(b, "\xde\0\0", 3); /* a map of up to 65,535 pairs */
	return b->len;
}

void pack_map_end(msgpack_packer *pk, size_t begin)
{
	struct buf *b = pk->data;
	unsigned char *head;
	size_t values;

	if (b->error)
		return;
	head = (unsigned char *)b->data + begin - 3;
	if (unpack_count(head + 3, b->len - begin, &values) || values % 2 ||
	    values / 2 > UINT16_MAX) {
		b->error = -EINVAL;
	} else if (values / 2 < 16) { /* the short form has its count in the first byte */
		head[0] = (unsigned char)(0x80 | values / 2);
		memmove(head + 1, head + 3, b->len - begin);
		b->len -= 2;
	} else {
		head[1] = (unsigned char)(values / 2 >> 8);
		head[2] = (unsigned char)(values / 2);
	}
}

void pack_map(msgpack_packer *pk, size_t n)
{
	msgpack_pack_map(pk, n);
}

void pack_array(msgpack_packer *pk, size_t n)
{
	msgpack_pack_array(pk, n);
}

void pack_nil(msgpack_packer *pk)
{
	msgpack_pack_nil(pk);
}

void pack_bool(msgpack_packer *pk, bool v)
{
	if (v)
		msgpack_pack_true(pk);
	else
		msgpack_pack_false(pk);
}

void pack_u64(msgpack_packer *pk, uint64_t v)
{
	msgpack_pack_uint64(pk, v);
}

void pack_i64(msgpack_packer *pk, int64_t v)
{
	msgpack_pack_int64(pk, v);
}

void pack_f64(msgpack_packer *pk, double v)
{
	if (isfinite(v))
		msgpack_pack_double(pk, v);
	else
		msgpack_pack_nil(pk);
}

void pack_str(msgpack_packer *pk, const char *s, size_t n)
{
	if (!s) {
		msgpack_pack_nil(pk);
		return;
	}
	msgpack_pack_str(pk, n);
	msgpack_pack_str_body(pk, s, n);
}

void pack_text(msgpack_packer *pk, const char *s)
{
	pack_str(pk, s, s ? strlen(s) : 0);
}

void pack_bin(msgpack_packer *pk, const void *p, size_t n)
{
	if (!p) {
		pack_nil(pk);
		return;
	}
	msgpack_pack_bin(pk, n);
	msgpack_pack_bin_body(pk, p, n);
}

msgpack_packer *packed_map_begin(struct packed_map *m)
{
	m->buf = (struct buf)BUF_INIT;
	pack_init(&m->pk, &m->buf);
	m->begin = pack_map_begin(&m->pk);
	return &m->pk;
}

struct buf *packed_map_end(struct packed_map *m)
{
	pack_map_end(&m->pk, m->begin);
	return &m->buf;
}

void pack_kv_nil(msgpack_packer *pk, const char *key)
{
	pack_text(pk, key);
	pack_nil(pk);
}

void pack_kv_u64(msgpack_packer *pk, const char *key, uint64_t v)
{
	pack_text(pk, key);
	pack_u64(pk, v);
}

void pack_kv_i64(msgpack_packer *pk, const char *key, int64_t v)
{
	pack_text(pk, key);
	pack_i64(pk, v);
}

void pack_kv_f64(msgpack_packer *pk, const char *key, double v)
{
	pack_text(pk, key);
	pack_f64(pk, v);
}

void pack_kv_text(msgpack_packer *pk, const char *key, const char *s)
{
	pack_text(pk, key);
	pack_text(pk, s);
}

void pack_kv_str(msgpack_packer *pk, const char *key, const char *s, size_t n)
{
	pack_text(pk, key);
	pack_str(pk, s, n);
}

void pack_kv_bin(msgpack_packer *pk, const char *key, const void *p, size_t n)
{
	pack_text(pk, key);
	pack_bin(pk, p, n);
}

void pack_kv_true(msgpack_packer *pk, const char *key, bool set)
{
	if (!set)
		return;
	pack_text(pk, key);
	pack_bool(pk, true);
}

void pack_kv_maybe(msgpack_packer *pk, const char *key, bool known, uint64_t v)
{
	if (known)
		pack_kv_u64(pk, key, v);
	else
		pack_kv_nil(pk, key);
}
