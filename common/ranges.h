/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ranges.h - sets of bytes of a file, or of records by number, as sorted ranges that do not touch.
 *
 * On the wire a set is an array of whole numbers: the gap before each range, and its length.
 * No state; any thread.
 */
#ifndef CREMA_COMMON_RANGES_H
#define CREMA_COMMON_RANGES_H

#include <msgpack.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
	uint64_t from, to;
};
struct ranges {
	struct range *v;
	size_t n, cap;
	uint64_t bytes; /* in all of them */
};

void ranges_release(struct ranges *r);
/* Adds [from, to). 0; -ENOSPC: it would need more than `most` ranges; -ENOMEM. Unchanged on
 * error. */
int ranges_add(struct ranges *r, uint64_t from, uint64_t to, size_t most);
bool ranges_has(const struct ranges *r, uint64_t at);
/* Adds all of `other`. */
int ranges_join(struct ranges *r, const struct ranges *other);
/* Bytes that are in both. */
uint64_t ranges_common(const struct ranges *a, const struct ranges *b);

void ranges_pack(msgpack_packer *pk, const struct ranges *r);
/* Replaces r with the set on the wire: 0, -EBADMSG (r is empty then) or -ENOMEM. */
int ranges_unpack(struct ranges *r, const msgpack_object *list);

#endif
