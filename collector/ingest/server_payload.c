/* SPDX-License-Identifier: BSD-3-Clause */
/* server_payload.c - walks a msgpack value without building it. */
#include "collector/ingest/server_payload.h"

#include <errno.h>

#include "common/walk.h"

int server_payload_check(const uint8_t *p, size_t n, uint32_t count, uint32_t *starts)
{
	const uint8_t *at = p, *end = p + n;
	struct walk_item item;
	int64_t used;
	uint32_t i;

	if (!walk_item(at, n, &item) || item.kind != WALK_ARRAY || item.number != count)
		return -EBADMSG;
	at += item.bytes;
	for (i = 0; i < count; i++, at += used) {
		if (!walk_item(at, (size_t)(end - at), &item) || item.kind != WALK_ARRAY ||
		    !item.number)
			return -EBADMSG;
		if (starts)
			starts[i] = (uint32_t)(at - p);
		at += item.bytes;
		used = walk_values(at, (size_t)(end - at), item.number, WALK_DEPTH_MAX - 2);
		if (used < 0 || !walk_item(at, (size_t)used, &item) || item.kind != WALK_NUMBER)
			return -EBADMSG;
	}
	return at == end ? 0 : -EBADMSG;
}
