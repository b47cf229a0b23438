/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record_line.h - one record of the journal as a line of JSON.
 *
 *	{"id": "WORKER-STREAM-NUMBER", "at": "SEGMENT/FRAME/ITEM", "worker": "hex",
 *	 "message": "TASK_END", "record": {...}}
 *
 * `id` names the record and never changes; `at` is its place (place.h). `message` is the name in
 * contract/messages.def, or the number if this version does not have it. `record` has the message's
 * values with the names in docs/wire.md; for a task the known ones. Bytes are hexadecimal text.
 * Hellos and the collector's notes also have a line each. No state.
 */
#ifndef CREMA_COLLECTOR_FOLLOW_RECORD_LINE_H
#define CREMA_COLLECTOR_FOLLOW_RECORD_LINE_H

#include "collector/emit/emit.h"
#include "collector/follow/place.h"
#include "common/frame.h"
#include "common/pack.h"

#define RECORD_ID_BYTES 96

struct record {
	char id[RECORD_ID_BYTES];
	struct place at;
	const uint8_t *worker;
	/* A message of a DATA frame: [type, ...]; or the map of a HELLO or NOTE frame. */
	const msgpack_object *message;
	uint8_t frame_type;
	const msgpack_object *task_fields; /* of the stream's hello; NULL: unknown */
};

/* Writes the line and its newline into `out`: 0 or -errno. */
int record_line(struct buf *out, const struct record *r);

#endif
