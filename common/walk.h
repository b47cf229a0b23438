/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * walk.h - steps over msgpack values in hostile bytes without building them.
 *
 * Pure functions: no allocation, no recursion, one pass, no read beyond n. Only this file
 * interprets msgpack bytes that are not checked yet; msgpack-c (pack.h) and, for tasks' records,
 * task_read.c see them afterwards.
 */
#ifndef CREMA_COMMON_WALK_H
#define CREMA_COMMON_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WALK_DEPTH_MAX 16 /* nested containers, not counting empty ones */

enum walk_kind { WALK_OTHER, WALK_NUMBER, WALK_TEXT, WALK_ARRAY, WALK_MAP };

struct walk_item {
	enum walk_kind kind; /* NUMBER: of an unsigned format; OTHER: nil, signed, float, ... */
	size_t bytes;	     /* of the whole value; for a container only its head */
	uint64_t number;     /* the NUMBER; a TEXT's length, which ends the value; values inside a
			      * container, two for each pair */
};

/* Bytes of a whole value whose first byte alone determines them; else 0: a length follows, a
 * container, no value. */
extern const uint8_t walk_size[256];

/* Most of a record is nil and numbers of one byte. These check the next WALK_RUN bytes: all nil;
 * each nil or a number. */
#define WALK_RUN 8
#define WALK_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

static inline bool walk_is_nils(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, WALK_RUN);
	return word == WALK_EACH(0xc0);
}

static inline bool walk_is_plain(const uint8_t *p)
{
	uint64_t word, other;

	memcpy(&word, p, WALK_RUN);
	other = word ^ WALK_EACH(0xc0);			     /* nil: 0 */
	other = (other & WALK_EACH(0x7f)) + WALK_EACH(0x7f); /* it has no 0x80 where word has one */
	return !(word & other & WALK_EACH(0x80));
}

/* n: 1, 2, 4 or 8 */
static inline uint64_t walk_big_endian(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	for (; n >= 4; p += 4, n -= 4)
		v = v << 32 | (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
		    p[3];
	for (; n; p++, n--)
		v = v << 8 | *p;
	return v;
}

/* The value at p; false: it is cut off, or there is none. */
bool walk_item(const uint8_t *p, size_t n, struct walk_item *item);
/* Steps over this many values with at most `depth` (WALK_DEPTH_MAX) nested containers; returns the
 * bytes they take, or -EBADMSG. */
int64_t walk_values(const uint8_t *p, size_t n, uint64_t values, unsigned int depth);

#endif
