/* SPDX-License-Identifier: BSD-3-Clause */
/* ranges.c - sets of bytes. */
#include "common/ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/pack.h"

void ranges_release(struct ranges *r)
{
	free(r->v);
	memset(r, 0, sizeof(*r));
}

/* The first range that ends at or after `at`. */
static size_t first_touching(const struct ranges *r, uint64_t at)
{
	size_t low = 0, high = r->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (r->v[middle].to < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int make_room(struct ranges *r, size_t at, size_t most)
{
	size_t cap = r->cap ? 2 * r->cap : 8;
	struct range *v;

	if (r->n >= most)
		return -ENOSPC;
	if (r->n == r->cap) {
		v = realloc(r->v, cap * sizeof(*v));
		if (!v)
			return -ENOMEM;
		r->v = v;
		r->cap = cap;
	}
	memmove(r->v + at + 1, r->v + at, (r->n - at) * sizeof(*r->v));
	r->n++;
	return 0;
}

int ranges_add(struct ranges *r, uint64_t from, uint64_t to, size_t most)
{
	size_t i = first_touching(r, from), end = i;
	struct range joined = {from, to};
	int rc;

	if (from >= to)
		return 0;
	if (i == r->n || r->v[i].from > to) {
		rc = make_room(r, i, most);
		if (!rc) {
			r->v[i] = joined;
			r->bytes += to - from;
		}
		return rc;
	}
	for (; end < r->n && r->v[end].from <= to; end++) {
		joined.from = r->v[end].from < joined.from ? r->v[end].from : joined.from;
		joined.to = r->v[end].to > joined.to ? r->v[end].to : joined.to;
		r->bytes -= r->v[end].to - r->v[end].from;
	}
	r->bytes += joined.to - joined.from;
	r->v[i] = joined;
	memmove(r->v + i + 1, r->v + end, (r->n - end) * sizeof(*r->v));
	r->n -= end - i - 1;
	return 0;
}

bool ranges_has(const struct ranges *r, uint64_t at)
{
	size_t i = first_touching(r, at);

	for (; i < r->n && r->v[i].from <= at; i++) {
		if (at < r->v[i].to)
			return true;
	}
	return false;
}

int ranges_join(struct ranges *r, const struct ranges *other)
{
	int rc = 0;

	for (size_t i = 0; i < other->n && !rc; i++)
		rc = ranges_add(r, other->v[i].from, other->v[i].to, SIZE_MAX);
	return rc;
}

uint64_t ranges_common(const struct ranges *a, const struct ranges *b)
{
	uint64_t bytes = 0, from, to;
	size_t i = 0, k = 0;

	while (i < a->n && k < b->n) {
		from = a->v[i].from > b->v[k].from ? a->v[i].from : b->v[k].from;
		to = a->v[i].to < b->v[k].to ? a->v[i].to : b->v[k].to;
		if (from < to)
			bytes += to - from;
		if (a->v[i].to < b->v[k].to)
			i++;
		else
			k++;
	}
	return bytes;
}

void ranges_pack(msgpack_packer *pk, const struct ranges *r)
{
	uint64_t at = 0;

	pack_array(pk, 2 * r->n);
	for (size_t i = 0; i < r->n; i++) {
		pack_u64(pk, r->v[i].from - at);
		pack_u64(pk, r->v[i].to - r->v[i].from);
		at = r->v[i].to;
	}
}

int ranges_unpack(struct ranges *r, const msgpack_object *list)
{
	uint64_t at = 0, gap, length;
	size_t i;
	int rc = 0;

	r->n = 0;
	r->bytes = 0;
	if (!list || list->type != MSGPACK_OBJECT_ARRAY || list->via.array.size % 2)
		return -EBADMSG;
	for (i = 0; i < list->via.array.size && !rc; i += 2) {
		if (!object_u64(&list->via.array.ptr[i], &gap) ||
		    !object_u64(&list->via.array.ptr[i + 1], &length) || gap > UINT64_MAX / 4 ||
		    length > UINT64_MAX / 4 || at > UINT64_MAX / 4) {
			rc = -EBADMSG;
			break;
		}
		rc = ranges_add(r, at + gap, at + gap + length, SIZE_MAX);
		at += gap + length;
	}
	if (rc) {
		r->n = 0;
		r->bytes = 0;
	}
	return rc;
}
