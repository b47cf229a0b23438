/* SPDX-License-Identifier: BSD-3-Clause */
/* server_payload.c - walks a msgpack value without building it. */
#include "collector/serve/server_payload.h"

#include <errno.h>
#include <stdbool.h>

#include "common/value_size.h"

enum kind { KIND_LEAF, KIND_NUMBER, KIND_ARRAY, KIND_MAP, KIND_BAD };

struct item {
	enum kind kind;
	size_t head;	 /* bytes of the type and its length or value */
	uint64_t length; /* bytes that follow, or values in the container */
};

static uint64_t big_endian(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

/* A type byte followed by a length of `width` bytes. */
static struct item sized(enum kind kind, const uint8_t *p, size_t n, size_t width, size_t extra)
{
	if (n < 1 + width)
		return (struct item){KIND_BAD, 0, 0};
	return (struct item){kind, 1 + width, big_endian(p + 1, width) + extra};
}

/* 0xc0 ... 0xdf; the format's own order. */
static struct item big_item(const uint8_t *p, size_t n)
{
	uint8_t t = p[0];

	switch (t) {
	case 0xc0:
	case 0xc2:
	case 0xc3: /* nil, false, true */
		return (struct item){KIND_LEAF, 1, 0};
	case 0xc4:
	case 0xc5:
	case 0xc6: /* bin */
		return sized(KIND_LEAF, p, n, (size_t)1 << (t - 0xc4), 0);
	case 0xc7:
	case 0xc8:
	case 0xc9: /* ext */
		return sized(KIND_LEAF, p, n, (size_t)1 << (t - 0xc7), 1);
	case 0xca:
	case 0xcb: /* float */
		return (struct item){KIND_LEAF, 1, (uint64_t)4 << (t - 0xca)};
	case 0xcc:
	case 0xcd:
	case 0xce:
	case 0xcf: /* uint */
		return (struct item){KIND_NUMBER, 1, (uint64_t)1 << (t - 0xcc)};
	case 0xd0:
	case 0xd1:
	case 0xd2:
	case 0xd3: /* int */
		return (struct item){KIND_LEAF, 1, (uint64_t)1 << (t - 0xd0)};
	case 0xd4:
	case 0xd5:
	case 0xd6:
	case 0xd7:
	case 0xd8: /* fixext */
		return (struct item){KIND_LEAF, 1, ((uint64_t)1 << (t - 0xd4)) + 1};
	case 0xd9:
	case 0xda:
	case 0xdb: /* str */
		return sized(KIND_LEAF, p, n, (size_t)1 << (t - 0xd9), 0);
	case 0xdc:
	case 0xdd: /* array */
		return sized(KIND_ARRAY, p, n, (size_t)2 << (t - 0xdc), 0);
	case 0xde:
	case 0xdf: /* map */
		return sized(KIND_MAP, p, n, (size_t)2 << (t - 0xde), 0);
	default:
		return (struct item){KIND_BAD, 0, 0};
	}
}

static struct item item_at(const uint8_t *p, size_t n)
{
	if (!n)
		return (struct item){KIND_BAD, 0, 0};
	if (p[0] < 0x80)
		return (struct item){KIND_NUMBER, 1, 0};
	if (p[0] < 0x90)
		return (struct item){KIND_MAP, 1, p[0] & 0x0fu};
	if (p[0] < 0xa0)
		return (struct item){KIND_ARRAY, 1, p[0] & 0x0fu};
	if (p[0] < 0xc0)
		return (struct item){KIND_LEAF, 1, p[0] & 0x1fu};
	if (p[0] < 0xe0)
		return big_item(p, n);
	return (struct item){KIND_LEAF, 1, 0};
}

/* Steps over plain values, as most of a task's record are; how many of `most`. */
static uint64_t step_over(const uint8_t **p, size_t *n, uint64_t most)
{
	const uint8_t *at = *p, *end = at + *n;
	uint64_t left = most;
	size_t size;

	while (left && at < end) {
		size = value_size[*at];
		if (!size || size > (size_t)(end - at))
			break;
		at += size;
		left--;
	}
	*p = at;
	*n = (size_t)(end - at);
	return most - left;
}

int server_payload_check(const uint8_t *p, size_t n, uint32_t count, uint32_t *starts)
{
	const uint8_t *begin = p;
	uint64_t left[SERVER_PAYLOAD_DEPTH] = {1}; /* values still to come, per level */
	unsigned int depth = 0;
	struct item item;
	bool first = false; /* the next value is a message's number */

	for (;;) {
		if (depth > 1 && !first)
			left[depth] -= step_over(&p, &n, left[depth]);
		while (!left[depth]) {
			if (!depth)
				return n ? -EBADMSG : 0;
			depth--;
		}
		left[depth]--;
		item = item_at(p, n);
		if (item.kind == KIND_BAD || (first && item.kind != KIND_NUMBER))
			return -EBADMSG;
		if (depth == 0 && (item.kind != KIND_ARRAY || item.length != count))
			return -EBADMSG;
		if (depth == 1 && (item.kind != KIND_ARRAY || !item.length))
			return -EBADMSG;
		first = depth == 1;
		if (first && starts)
			*starts++ = (uint32_t)(p - begin);
		p += item.head;
		n -= item.head;
		if (item.kind == KIND_LEAF || item.kind == KIND_NUMBER) {
			if (item.length > n)
				return -EBADMSG;
			p += item.length;
			n -= (size_t)item.length;
			continue;
		}
		/* Every value takes a byte at least: a huge count cannot keep us busy. */
		if (item.length > n || ++depth == SERVER_PAYLOAD_DEPTH)
			return -EBADMSG;
		left[depth] = item.kind == KIND_MAP ? 2 * item.length : item.length;
	}
}
