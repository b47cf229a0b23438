/* SPDX-License-Identifier: BSD-3-Clause */
/* live_rows.c - takes hellos, samples, totals, Dask's own numbers and goodbyes of a worker. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collector/live/live_parts.h"
#include "common/walk.h"

#define FACTS_BYTES (64u << 10)

/* Hello */

static void set_field(struct live_fields *f, const msgpack_object *name, int at)
{
	static const struct {
		const char *name;
		size_t offset;
	} wanted[] = {
		{"attempt", offsetof(struct live_fields, attempt)},
		{"status", offsetof(struct live_fields, status)},
		{"prefix", offsetof(struct live_fields, prefix)},
		{"flags", offsetof(struct live_fields, flags)},
		{"wall_ns", offsetof(struct live_fields, wall)},
		{"events", offsetof(struct live_fields, events)},
	};
	struct text text;
	size_t i;

	if (!object_text(name, &text))
		return;
	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (!text_is(text, wanted[i].name))
			continue;
		*(int *)(void *)((char *)f + wanted[i].offset) = at;
		f->last = at;
		if (at < 64)
			f->wanted |= UINT64_C(1) << at;
	}
}

void live_hello_fields(struct live_fields *f, const msgpack_object *map)
{
	const msgpack_object *names = get(map, "task_fields");
	uint32_t i;

	*f = (struct live_fields){0, false, -1, -1, -1, -1, -1, -1, -1, 0};
	if (!names || names->type != MSGPACK_OBJECT_ARRAY)
		return;
	f->set = true;
	for (i = 0; i < names->via.array.size; i++)
		set_field(f, &names->via.array.ptr[i], (int)i);
}

static void take_fields(struct live_worker *w, uint64_t stream, const msgpack_object *map)
{
	struct live_fields f, *to;

	live_hello_fields(&f, map);
	if (!f.set)
		return;
	f.stream = stream;
	to = live_fields_of(w, stream);
	if (!to) {
		to = &w->fields[w->fields_next];
		w->fields_next = (w->fields_next + 1) % LIVE_STREAMS;
	}
	*to = f;
}

static double number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static void json_name(char *to, size_t size, const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	if (text)
		live_text(to, size, (struct text){text, strlen(text)});
}

static void take_stack(struct live_worker *w, struct text stack)
{
	json_t *root = stack.ptr && stack.len <= FACTS_BYTES
			       ? json_loadb(stack.ptr, stack.len, 0, NULL)
			       : NULL;

	json_name(w->address, sizeof(w->address), root, "worker_address");
	json_name(w->name, sizeof(w->name), root, "worker_name");
	if (!isnan(number(root, "nthreads")))
		w->threads = number(root, "nthreads");
	if (!isnan(number(root, "memory_limit_bytes")))
		w->limit_bytes = number(root, "memory_limit_bytes");
	json_decref(root);
}

static void sign(struct live_worker *w, uint64_t boot_ns)
{
	if (boot_ns > w->last_boot_ns)
		w->last_boot_ns = boot_ns;
}

void live_rows_hello(struct live_worker *w, uint64_t stream, const msgpack_object *map)
{
	const msgpack_object *facts = get(map, "facts");

	uint64_t boot_ns = get_u64(facts, "boot_ns", 0);

	take_fields(w, stream, map);
	/* An older one: of another stream, or of this one in another journal. */
	if (stream < w->hello_stream || (stream == w->hello_stream && boot_ns < w->hello_boot_ns))
		return;
	w->hello_stream = stream;
	w->hello_boot_ns = boot_ns;
	w->hello_real_ns = get_u64(facts, "real_ns", 0);
	sign(w, w->hello_boot_ns);
	w->pid = get_u64(facts, "pid", 0);
	live_text(w->host, sizeof(w->host), get_text(facts, "host"));
	take_stack(w, get_text(facts, "stack"));
}

/* Messages that are maps */

/* Values that are not finite are unknown. */
static double real(const msgpack_object *map, const char *key)
{
	double value = get_f64(map, key, (double)NAN);

	return isfinite(value) ? value : (double)NAN;
}

static void feed_sample(struct live_worker *w, const msgpack_object *map)
{
	uint64_t boot_ns = get_u64(map, "boot_ns", 0);

	sign(w, boot_ns);
	if (boot_ns < w->sample_boot_ns)
		return;
	w->sample_boot_ns = boot_ns;
	w->cpu_percent = real(map, "cpu_percent");
	w->rss_bytes = real(map, "rss_bytes");
	w->running = real(map, "tasks_running");
}

static void feed_goodbye(struct live *live, struct live_worker *w, const msgpack_object *map)
{
	sign(w, get_u64(map, "boot_ns", 0));
	if (w->goodbye)
		return;
	w->goodbye = true;
	w->killed = !text_is(get_text(map, "how"), "exit");
	w->goodbye_order = live->gone_order++;
	live->gone_count++;
	if (w->killed)
		live->gone_killed++;
	else
		live->gone_ended++;
}

/* Dask's numbers without the digests at the end, which are most of the text. */
static json_t *probe_json(struct text text)
{
	static const char digests[] = ", \"digests\": [";
	const char *cut = memmem(text.ptr, text.len, digests, sizeof(digests) - 1);
	char *copy;
	json_t *root;
	size_t n;

	if (!cut)
		return json_loadb(text.ptr, text.len, 0, NULL);
	n = (size_t)(cut - text.ptr);
	copy = malloc(n + 1);
	if (!copy)
		return NULL;
	memcpy(copy, text.ptr, n);
	copy[n] = '}';
	root = json_loadb(copy, n + 1, 0, NULL);
	free(copy);
	return root ? root : json_loadb(text.ptr, text.len, 0, NULL);
}

static bool is_paused(const json_t *status)
{
	return json_is_string(status) && strstr(json_string_value(status), "paused");
}

static void feed_probe(struct live *live, struct live_worker *w, uint64_t boot_ns, struct text text)
{
	json_t *root;

	sign(w, boot_ns);
	if (boot_ns < w->probe_boot_ns || !text.len)
		return;
	root = probe_json(text);
	if (!json_is_object(root)) {
		json_decref(root);
		return;
	}
	w->probe_boot_ns = boot_ns;
	w->threads = number(root, "nthreads");
	w->limit_bytes = number(root, "memory_limit_bytes");
	w->executing = number(root, "executing");
	w->ready = number(root, "ready");
	w->long_running = number(root, "long_running");
	w->fetching = number(root, "in_flight_data");
	w->managed = number(root, "nbytes_managed");
	w->spilled = number(root, "spilled_bytes");
	w->paused = is_paused(json_object_get(root, "status"));
	live_progress_feed(live, w, json_object_get(root, "scheduler"));
	json_decref(root);
}

static int feed_tree(struct live *live, struct live_worker *w, uint64_t type,
		     const msgpack_object *message, const uint8_t *p, size_t n)
{
	const msgpack_object *item = message->via.array.ptr;
	uint64_t boot_ns;
	struct text text;

	if (message->via.array.size < 2) {
		live->records_bad++;
		return 0;
	}
	if (type == CREMA_MSG_DASK) {
		if (message->via.array.size >= 3 && object_u64(&item[1], &boot_ns) &&
		    object_text(&item[2], &text))
			feed_probe(live, w, boot_ns, text);
		else
			live->records_bad++;
		return 0;
	}
	if (item[1].type != MSGPACK_OBJECT_MAP) {
		live->records_bad++;
		return 0;
	}
	if (type == CREMA_MSG_SAMPLE)
		feed_sample(w, &item[1]);
	else if (type == CREMA_MSG_TOTALS)
		live_totals(live, w, &item[1]);
	else if (type == CREMA_MSG_DOING)
		return live_calls_take(live, w, &item[1], p, n);
	else
		feed_goodbye(live, w, &item[1]);
	return 0;
}

/* The checked bytes begin with an array of at least one value, a number. */
int live_message(struct live *live, struct live_worker *w, const struct live_fields *fields,
		 const uint8_t *p, size_t n)
{
	struct walk_item array;
	struct unpack u;
	size_t head;
	uint8_t type;
	int err;

	if (!walk_item(p, n, &array) || array.bytes >= n)
		return 0;
	head = array.bytes;
	type = p[head];
	if (type == CREMA_MSG_TASK_END)
		return live_task_end(live, w, fields, p + head + 1, n - head - 1);
	if (type != CREMA_MSG_SAMPLE && type != CREMA_MSG_TOTALS && type != CREMA_MSG_DASK &&
	    type != CREMA_MSG_GOODBYE && type != CREMA_MSG_DOING)
		return 0;
	err = unpack_open(&u, p, n);
	if (err)
		return err == -ENOMEM ? err : 0;
	err = feed_tree(live, w, type, &u.root, p, n);
	unpack_release(&u);
	return err;
}
