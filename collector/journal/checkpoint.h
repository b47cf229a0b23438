/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checkpoint.h - the collector's state at the head of a journal segment, so that a start reads the
 * segments from there on and none before.
 *
 * A checkpoint is a list of items, each a msgpack array that begins with its enum checkpoint_item,
 * in CHECKPOINT frames that are the first ones of their segment: numbered from 0 (first_seq), the
 * last one with count 1. It is read whole or not at all: where a frame is missing, torn or of
 * another checkpoint, the segment has none. It covers what was journaled in earlier segments, at
 * least: frames that follow and are in it already are recognised by their streams' positions.
 * Reports do not read it.
 *
 * Items of the first kind must come first: who reads another format or other tables of counters has
 * no checkpoint, and reads the journal instead.
 */
#ifndef CREMA_COLLECTOR_JOURNAL_CHECKPOINT_H
#define CREMA_COLLECTOR_JOURNAL_CHECKPOINT_H

#include "common/pack.h"

#define CHECKPOINT_FORMAT 1u

enum checkpoint_item {
	CHECKPOINT_TABLES, /* format, hash of the names of live values (0: no live numbers) */
	CHECKPOINT_STREAM, /* worker, stream, the next record's number */
	CHECKPOINT_SUMS,   /* live.h, as the others */
	CHECKPOINT_WORKER,
	CHECKPOINT_FOLDED,
};

struct checkpoint {
	struct buf *out, body;
	msgpack_packer pk;
	uint64_t id, parts;
	uint32_t items; /* in the body */
	int error;
};

/* Frames are appended to `out`. */
void checkpoint_begin(struct checkpoint *checkpoint, struct buf *out);
/* The next item is packed there: an array of `values` more than its kind. */
msgpack_packer *checkpoint_item(struct checkpoint *checkpoint, enum checkpoint_item kind,
				size_t values);
/* How many frames were appended, or -errno: then they are no checkpoint. */
int checkpoint_end(struct checkpoint *checkpoint);

/*
 * Gives the items of a segment's checkpoint. -ENOENT: it has none, and take() was not called;
 * -errno; -EBADMSG: an item is no array; or what take() returned if it was not 0. *bytes: of its
 * frames.
 */
int checkpoint_read(const char *path, int (*take)(void *arg, const msgpack_object_array *item),
		    void *arg, uint64_t *bytes);
/* The item's value: false if there is none such, or of another type. */
bool checkpoint_u64(const msgpack_object_array *item, uint32_t at, uint64_t *value);
/* A worker's id; NULL: it is none. */
const uint8_t *checkpoint_id(const msgpack_object_array *item, uint32_t at);

#endif
