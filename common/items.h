/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * items.h - a list of items in separate frames, accepted completely or not at all.
 *
 * Each item is a msgpack array that begins with its kind. They are in frames of one type, the first
 * ones of their file: numbered from 0 (first_seq), the last one with count 1. If a frame is
 * missing, torn or part of another list there are no items. Checkpoints
 * (collector/journal/checkpoint.h) and footers (collector/model/footer.h) consist of them. No
 * state; any thread.
 */
#ifndef CREMA_COMMON_ITEMS_H
#define CREMA_COMMON_ITEMS_H

#include "common/pack.h"

#define ITEMS_BYTES (512u << 10) /* limit for one item */

struct items {
	struct buf *out, body;
	msgpack_packer pk;
	uint8_t type;
	uint64_t id, parts;
	uint32_t items; /* in the body */
	int error;
};

/* Frames of that type are appended to `out`. */
void items_begin(struct items *items, struct buf *out, uint8_t type);
/* The next item is packed there: an array of `values` values after its kind. */
msgpack_packer *items_add(struct items *items, unsigned int kind, size_t values);
/* Number of appended frames, or -errno: then they are not a list. */
int items_end(struct items *items);

/*
 * Passes the items of a file to take(). -ENOENT: it has none, and take() was not called; -errno;
 * -EBADMSG: an item is not an array; or what take() returned if it was not 0. *bytes: of its
 * frames.
 */
int items_read(const char *path, uint8_t type,
	       int (*take)(void *arg, const msgpack_object_array *item), void *arg,
	       uint64_t *bytes);
/* The same for a file that items_read() has found complete before, and which is not checked again:
 * if it is incomplete now, take() may have been called (-EIO). */
int items_read_whole(const char *path, uint8_t type,
		     int (*take)(void *arg, const msgpack_object_array *item), void *arg);
/* The item's value: false if it is missing or of another type. */
bool items_u64(const msgpack_object_array *item, uint32_t at, uint64_t *value);
/* A worker's id; NULL: the value is not an id. */
const uint8_t *items_id(const msgpack_object_array *item, uint32_t at);

#endif
