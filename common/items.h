/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * items.h - a list of items in frames of their own, believed whole or not at all.
 *
 * Each item is a msgpack array that begins with its kind. They are in frames of one type, the first
 * ones of their file: numbered from 0 (first_seq), the last one with count 1. Where a frame is
 * missing, torn or of another list there are no items. Checkpoints (collector/journal/checkpoint.h)
 * and footers (collector/model/footer.h) are made of them. No state; any thread.
 */
#ifndef CREMA_COMMON_ITEMS_H
#define CREMA_COMMON_ITEMS_H

#include "common/pack.h"

#define ITEMS_BYTES (512u << 10) /* more than one item may take */

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
/* The next item is packed there: an array of `values` more than its kind. */
msgpack_packer *items_add(struct items *items, unsigned int kind, size_t values);
/* How many frames were appended, or -errno: then they are no list. */
int items_end(struct items *items);

/*
 * Gives the items of a file. -ENOENT: it has none, and take() was not called; -errno; -EBADMSG: an
 * item is not an array; or what take() returned if it was not 0. *bytes: of its frames.
 */
int items_read(const char *path, uint8_t type,
	       int (*take)(void *arg, const msgpack_object_array *item), void *arg,
	       uint64_t *bytes);
/* The same of a file that items_read() has found whole before, which is not checked again: take()
 * may have been called when it is not after all (-EIO). */
int items_read_whole(const char *path, uint8_t type,
		     int (*take)(void *arg, const msgpack_object_array *item), void *arg);
/* The item's value: false if there is none such, or of another type. */
bool items_u64(const msgpack_object_array *item, uint32_t at, uint64_t *value);
/* A worker's id; NULL: it is none. */
const uint8_t *items_id(const msgpack_object_array *item, uint32_t at);

#endif
