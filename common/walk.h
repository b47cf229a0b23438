/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * walk.h - steps over msgpack values in hostile bytes without building them.
 *
 * Pure functions: no allocation, no recursion, one pass, no read beyond n. This is the only place
 * that interprets bytes of msgpack which nobody has checked; msgpack-c sees them afterwards
 * (pack.h).
 */
#ifndef CREMA_COMMON_WALK_H
#define CREMA_COMMON_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WALK_DEPTH_MAX 16 /* containers in one another, not counting empty ones */

enum walk_kind { WALK_OTHER, WALK_NUMBER, WALK_TEXT, WALK_ARRAY, WALK_MAP };

struct walk_item {
	enum walk_kind kind; /* NUMBER: of an unsigned format; OTHER: nil, signed, float, ... */
	size_t bytes;	     /* of the whole value; of a container its head only */
	uint64_t number;     /* the NUMBER; a TEXT's length, which ends the value; values inside a
			      * container, two for each pair */
};

/* Bytes of a whole value whose first byte alone determines them; else 0: a length follows, a
 * container, no value. */
extern const uint8_t walk_size[256];

/* The value at p; false: it is cut off, or none. */
bool walk_item(const uint8_t *p, size_t n, struct walk_item *item);
/* Steps over so many values with at most `depth` (WALK_DEPTH_MAX) containers in one another; the
 * bytes they take, or -EBADMSG. */
int64_t walk_values(const uint8_t *p, size_t n, uint64_t values, unsigned int depth);

#endif
