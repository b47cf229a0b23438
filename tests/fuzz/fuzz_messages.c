/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_messages.c - payloads as an agent sends them, without their frames: the collector checks the
 * form of each, then the report reads its contents, and `crema follow` writes lines of JSON that
 * can be read back. The input is a list of [kind, length (2 bytes), payload].
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "collector/follow/record_line.h"
#include "collector/ingest/server_payload.h"
#include "common/frame.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/report_all.h"

static const uint8_t kinds[] = {CREMA_FRAME_HELLO, CREMA_FRAME_DATA, CREMA_FRAME_NOTE,
				CREMA_FRAME_DATA};

static void line_of(const msgpack_object *message, uint8_t kind)
{
	struct record r = {.id = "x", .message = message, .frame_type = kind};
	struct buf line = BUF_INIT;
	json_t *json;

	r.task_fields = message;
	if (record_line(&line, &r))
		abort();
	json = json_loadb((const char *)line.data, line.len,
			  JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, NULL);
	if (!json || memchr(line.data, '\n', line.len) != line.data + line.len - 1)
		abort();
	json_decref(json);
	buf_release(&line);
}

static void follow(const uint8_t *payload, size_t n, uint8_t kind)
{
	struct unpack u;

	if (unpack_open(&u, payload, n))
		return;
	line_of(&u.root, kind);
	for (uint32_t i = 0; u.root.type == MSGPACK_OBJECT_ARRAY && i < u.root.via.array.size; i++)
		line_of(&u.root.via.array.ptr[i], kind);
	unpack_release(&u);
}

static void feed(struct model *m, uint8_t kind, uint64_t seq, const uint8_t *payload, size_t n)
{
	uint32_t starts[64], count = kind >> 2;
	struct crema_frame_header h;
	uint8_t worker[16];

	memset(worker, kind >> 7, sizeof(worker));
	h = frame_head(kinds[kind % 4], worker, 1);
	h.first_seq = seq;
	h.count = count;
	h.raw_bytes = (uint32_t)n;
	server_payload_check(payload, n, count, starts);
	model_feed(m, &h, payload, n);
	follow(payload, n, h.type);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct model m;
	size_t bytes;

	if (model_init(&m))
		abort();
	for (uint64_t seq = 0; n >= 3; seq += 8) {
		bytes = data[1] | (size_t)data[2] << 8;
		if (bytes > n - 3)
			bytes = n - 3;
		feed(&m, data[0], seq, data + 3, bytes);
		data += 3 + bytes;
		n -= 3 + bytes;
	}
	report_all(&m);
	model_release(&m);
	return 0;
}
