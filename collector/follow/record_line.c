/* SPDX-License-Identifier: BSD-3-Clause */
/* record_line.c - see record_line.h. */
#include "collector/follow/record_line.h"

#include <stdio.h>

#include "collector/emit/emit_json.h"
#include "common/task.h"

#define KEY_BYTES 256 /* longer ones are cut: no agent sends them */

static void put(struct json *j, const char *name, const msgpack_object *o);

static void put_hex(struct json *j, const char *name, const msgpack_object_bin *b)
{
	struct buf hex = BUF_INIT;

	if (buf_reserve(&hex, 2 * (size_t)b->size)) {
		j->sink->error = j->sink->error ? j->sink->error : hex.error;
		return;
	}
	frame_digits((char *)hex.data, b->ptr, b->size);
	emit_text(j, name, (const char *)hex.data, 2 * (size_t)b->size);
	buf_release(&hex);
}

static void put_pairs(struct json *j, const msgpack_object_map *map)
{
	char key[KEY_BYTES];
	struct text name;
	uint32_t i;

	for (i = 0; i < map->size; i++) {
		if (object_text(&map->ptr[i].key, &name))
			put(j, text_copy(key, sizeof(key), name), &map->ptr[i].val);
	}
}

/* walk.h limits the depth. */
static void put(struct json *j, const char *name, const msgpack_object *o)
{
	uint32_t i;

	switch (o->type) {
	case MSGPACK_OBJECT_BOOLEAN:
		emit_value(j, name, value_bool(o->via.boolean));
		break;
	case MSGPACK_OBJECT_POSITIVE_INTEGER:
		emit_value(j, name, value_uint(o->via.u64));
		break;
	case MSGPACK_OBJECT_NEGATIVE_INTEGER:
		emit_value(j, name, value_int(o->via.i64));
		break;
	case MSGPACK_OBJECT_FLOAT32:
	case MSGPACK_OBJECT_FLOAT64:
		emit_value(j, name, value_real(o->via.f64));
		break;
	case MSGPACK_OBJECT_STR:
		emit_text(j, name, o->via.str.ptr, o->via.str.size);
		break;
	case MSGPACK_OBJECT_BIN:
		put_hex(j, name, &o->via.bin);
		break;
	case MSGPACK_OBJECT_ARRAY:
		emit_array(j, name);
		for (i = 0; i < o->via.array.size; i++)
			put(j, NULL, &o->via.array.ptr[i]);
		emit_end(j);
		break;
	case MSGPACK_OBJECT_MAP:
		emit_object(j, name);
		put_pairs(j, &o->via.map);
		emit_end(j);
		break;
	default: /* nil, and types that no agent sends */
		emit_value(j, name, value_null());
	}
}

static const char *message_name(uint64_t type, char number[24])
{
	static const char *const names[] = {
#define FRAME(id, number, help)
#define MESSAGE(id, number, help) [number] = #id,
#include "messages.def"
#undef FRAME
#undef MESSAGE
	};

	if (type < sizeof(names) / sizeof(*names) && names[type])
		return names[type];
	snprintf(number, 24, "%llu", (unsigned long long)type);
	return number;
}

/* [type, rev, values...]: the known ones, with the hello's names. */
static void put_task(struct json *j, const msgpack_object_array *a, const msgpack_object_array *n)
{
	char key[KEY_BYTES];
	struct text name;
	uint32_t i;

	emit_object(j, "record");
	put(j, "rev", &a->ptr[1]);
	for (i = 0; i + 2 < a->size && i < n->size; i++) {
		if (!is_nil(&a->ptr[i + 2]) && object_text(&n->ptr[i], &name))
			put(j, text_copy(key, sizeof(key), name), &a->ptr[i + 2]);
	}
	emit_end(j);
}

static void put_message(struct json *j, const struct record *r)
{
	const msgpack_object_array *a = &r->message->via.array;
	const msgpack_object *names = r->task_fields;
	char number[24];
	uint64_t type;
	uint32_t i;

	if (r->message->type != MSGPACK_OBJECT_ARRAY || a->size < 2 ||
	    !object_u64(&a->ptr[0], &type)) {
		emit_value(j, "message", value_null());
		put(j, "record", r->message);
		return;
	}
	emit_value(j, "message", value_text(message_name(type, number)));
	if (task_is_message(type) && names && names->type == MSGPACK_OBJECT_ARRAY) {
		put_task(j, a, &names->via.array);
	} else if (type == CREMA_MSG_DASK && a->size == 3) {
		emit_object(j, "record");
		put(j, "boot_ns", &a->ptr[1]);
		put(j, "json", &a->ptr[2]);
		emit_end(j);
	} else if (a->size == 2) {
		put(j, "record", &a->ptr[1]);
	} else {
		emit_array(j, "record");
		for (i = 1; i < a->size; i++)
			put(j, NULL, &a->ptr[i]);
		emit_end(j);
	}
}

int record_line(struct buf *out, const struct record *r)
{
	struct sink sink = {.out = out};
	char at[PLACE_BYTES], hex[FRAME_HEX_BYTES];
	struct json j;

	emit_init(&j, &sink);
	j.pretty = false;
	emit_object(&j, NULL);
	emit_value(&j, "id", value_text(r->id));
	emit_value(&j, "at", value_text(place_text(at, &r->at)));
	emit_value(&j, "worker", value_text(r->worker ? frame_hex(hex, r->worker) : NULL));
	if (r->frame_type == CREMA_FRAME_DATA) {
		put_message(&j, r);
	} else {
		emit_value(&j, "message",
			   value_text(r->frame_type == CREMA_FRAME_HELLO ? "HELLO" : "NOTE"));
		put(&j, "record", r->message);
	}
	emit_end(&j);
	return sink.error ? sink.error : out->error;
}
