/* SPDX-License-Identifier: BSD-3-Clause */
/* walk.c - steps over msgpack values in hostile bytes. */
#include "common/walk.h"

#include <errno.h>

#define X8(n) n, n, n, n, n, n, n, n
#define X32(n) X8(n), X8(n), X8(n), X8(n)
#define UP8(n) n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7

const uint8_t walk_size[256] = {
	X32(1), X32(1), X32(1),	 X32(1),	       /* 00 to 7f: small numbers */
	X32(0),					       /* 80 to 9f: maps and arrays */
	UP8(1), UP8(9), UP8(17), UP8(25),	       /* a0 to bf: short texts */
	1,	0,	1,	 1,	  0, 0, 0, 0,  /* c0: nil, -, false, true, bin, ext */
	0,	0,	5,	 9,	  2, 3, 5, 9,  /* c8: ext, float, uint */
	2,	3,	5,	 9,	  3, 4, 6, 10, /* d0: int, fixed ext */
	18,	0,	0,	 0,	  0, 0, 0, 0,  /* d8: fixed ext, str, array, map */
	X32(1),					       /* e0 to ff: small negative numbers */
};

/* Bytes of the length that follows the first byte, from 0xc0 on. */
static const uint8_t width[32] = {
	[0x04] = 1, [0x05] = 2, [0x06] = 4, /* bin */
	[0x07] = 1, [0x08] = 2, [0x09] = 4, /* ext */
	[0x19] = 1, [0x1a] = 2, [0x1b] = 4, /* str */
	[0x1c] = 2, [0x1d] = 4,		    /* array */
	[0x1e] = 2, [0x1f] = 4,		    /* map */
};

static bool container(struct walk_item *item, bool map, size_t head, uint64_t count)
{
	*item = (struct walk_item){map ? WALK_MAP : WALK_ARRAY, head, map ? 2 * count : count};
	return true;
}

/* A first byte that needs no length, or contains it. */
static bool plain(const uint8_t *p, size_t n, struct walk_item *item)
{
	uint8_t c = *p;
	size_t size = walk_size[c];

	if (size > n)
		return false;
	*item = (struct walk_item){.bytes = size};
	if (c < 0x80) {
		item->kind = WALK_NUMBER;
		item->number = c;
	} else if (c < 0xc0) {
		item->kind = WALK_TEXT;
		item->number = size - 1;
	} else if (c >= 0xcc && c <= 0xcf) {
		item->kind = WALK_NUMBER;
		item->number = walk_big_endian(p + 1, size - 1);
	}
	return true;
}

bool walk_item(const uint8_t *p, size_t n, struct walk_item *item)
{
	uint64_t length;
	size_t head;
	uint8_t c;

	if (!n)
		return false;
	c = *p;
	if (walk_size[c])
		return plain(p, n, item);
	if (c < 0xa0)
		return container(item, c < 0x90, 1, c & 15u);
	head = 1u + width[c - 0xc0];
	if (head == 1 || head > n)
		return false;
	length = walk_big_endian(p + 1, head - 1);
	if (c >= 0xdc)
		return container(item, c >= 0xde, head, length);
	length += c >= 0xc7 && c <= 0xc9; /* an ext's type */
	if (length > n - head)
		return false;
	*item = (struct walk_item){c >= 0xd9 ? WALK_TEXT : WALK_OTHER, head + (size_t)length,
				   length};
	return true;
}

/* The compiler must keep one addition for each size: the processor then predicts the size, as
 * records are much alike, and reads the next value before this one's first byte has come from
 * memory. */
static inline const uint8_t *past(const uint8_t *at, size_t size)
{
	at += size;
	__asm__("" : "+r"(at));
	return at;
}

/* Steps over at most this many values whose first byte determines their size; returns how many are
 * left. */
static uint64_t step_over(const uint8_t **from, const uint8_t *end, uint64_t left)
{
	const uint8_t *at = *from;
	size_t size;

	while (left && at < end) {
		size = walk_size[*at];
		if (!size || size > (size_t)(end - at))
			break;
		left--;
		if (size == 1) {
			at = past(at, 1);
			while (left >= WALK_RUN && end - at >= WALK_RUN && walk_is_plain(at)) {
				at += WALK_RUN;
				left -= WALK_RUN;
			}
		} else if (size == 3) {
			at = past(at, 3);
		} else if (size == 5) {
			at = past(at, 5);
		} else if (size == 9) {
			at = past(at, 9);
		} else {
			at += size;
		}
	}
	*from = at;
	return left;
}

int64_t walk_values(const uint8_t *p, size_t n, uint64_t values, unsigned int depth)
{
	const uint8_t *at = p, *end = p + n;
	uint64_t open[WALK_DEPTH_MAX + 1] = {values}; /* values still to come, per level */
	struct walk_item item;
	unsigned int level = 0;

	for (;;) {
		open[level] = step_over(&at, end, open[level]);
		if (!open[level]) {
			if (!level)
				return at - p;
			level--;
			continue;
		}
		if (!walk_item(at, (size_t)(end - at), &item))
			return -EBADMSG;
		open[level]--;
		at += item.bytes;
		if (item.kind < WALK_ARRAY || !item.number)
			continue;
		/* Each value takes at least one byte: a huge count cannot keep us busy. */
		if (item.number > (size_t)(end - at) || level == depth || level == WALK_DEPTH_MAX)
			return -EBADMSG;
		open[++level] = item.number;
	}
}
