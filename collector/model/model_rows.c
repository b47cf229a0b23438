/* SPDX-License-Identifier: BSD-3-Clause */
/* model_rows.c - hello and the messages that are maps. */
#include "collector/model/file_place.h"
#include "collector/model/model_map.h"
#include "collector/model/selection.h"
#include "common/rows.h"
#include "common/run_name.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static double map_real(const msgpack_object *map, const char *key)
{
	return get_f64(map, key, (double)NAN);
}

static int add_clock(struct worker *w, uint64_t boot_ns, uint64_t real_ns, bool local)
{
	struct clock_pair *c = ARRAY_NEW(&w->clocks);

	if (!c)
		return -ENOMEM;
	*c = (struct clock_pair){boot_ns, real_ns, local};
	return 0;
}

static int hello_filesystems(struct model *m, struct worker *w, const msgpack_object *list)
{
	struct filesystem *f;
	size_t i;

	w->filesystems.n = 0;
	if (!list || list->type != MSGPACK_OBJECT_ARRAY)
		return 0;
	for (i = 0; i < list->via.array.size; i++) {
		f = ARRAY_NEW(&w->filesystems);
		if (!f)
			return -ENOMEM;
		f->path = map_text(m, &list->via.array.ptr[i], "path");
		f->type = map_text(m, &list->via.array.ptr[i], "type");
		f->storage = map_text(m, &list->via.array.ptr[i], "storage");
		f->calibration = map_text(m, &list->via.array.ptr[i], "calibration");
	}
	return 0;
}

int model_feed_hello(struct model *m, struct worker *w, uint64_t stream, const msgpack_object *map)
{
	const msgpack_object *facts = get(map, "facts");
	struct stream *s = worker_stream(w, stream);
	uint64_t boot_ns, real_ns;
	struct text stack;

	if (!s)
		return -ENOMEM;
	if (task_map_init(&s->map, get(map, "task_fields")))
		m->records_bad++;
	else
		s->has_map = true;
	boot_ns = get_u64(facts, "boot_ns", 0);
	real_ns = get_u64(facts, "real_ns", 0);
	if (boot_ns && real_ns && add_clock(w, boot_ns, real_ns, true))
		return -ENOMEM;
	worker_sign(w, boot_ns);
	if (stream < w->hello_stream)
		return 0;
	w->hello_stream = stream;
	w->host = map_text(m, facts, "host");
	w->boot_id = map_text(m, facts, "boot_id");
	w->agent_version = map_text(m, facts, "agent_version");
	w->cpu_model = map_text(m, facts, "cpu_model");
	w->kernel = map_text(m, facts, "kernel");
	w->python = map_text(m, facts, "python");
	w->run_name = map_text(m, facts, "run_name");
	if (!run_name_is_good(w->run_name))
		w->run_name = NULL;
	w->net_namespace = map_uint(facts, "net_namespace");
	w->pid = map_uint(facts, "pid");
	w->start_ticks = map_uint(facts, "start_ticks");
	w->cores = map_uint(facts, "cores");
	w->memory_bytes = map_uint(facts, "memory_bytes");
	stack = get_text(facts, "stack");
	if (stack.ptr)
		model_stack_facts(m, w, stack);
	return hello_filesystems(m, w, get(facts, "filesystems"));
}

static int feed_sample(struct worker *w, const msgpack_object *map)
{
	struct sample *s = ARRAY_NEW(&w->samples);

	if (!s)
		return -ENOMEM;
	s->boot_ns = get_u64(map, "boot_ns", 0);
	for (size_t i = 0; i < CREMA_SAMPLE_NUMBERS; i++)
		s->number[i] = map_real(map, row_sample[i]);
	worker_sign(w, s->boot_ns);
	return 0;
}

static int feed_host(struct worker *w, const msgpack_object *map)
{
	struct host_sample *h = ARRAY_NEW(&w->hosts);

	if (!h)
		return -ENOMEM;
	h->boot_ns = get_u64(map, "boot_ns", 0);
	for (size_t i = 0; i < CREMA_HOST_NUMBERS; i++)
		h->number[i] = map_real(map, row_host[i]);
	worker_sign(w, h->boot_ns);
	return 0;
}

static int take_list(struct model *m, struct texts *a, const msgpack_object *list)
{
	const char **at, *text;
	struct text t;
	size_t i, j;

	for (i = 0; list && list->type == MSGPACK_OBJECT_ARRAY && i < list->via.array.size; i++) {
		if (!object_text(&list->via.array.ptr[i], &t))
			continue;
		text = model_text(m, t);
		for (j = 0; j < a->n && a->v[j] != text; j++)
			;
		if (!text || j < a->n)
			continue;
		at = ARRAY_NEW(a);
		if (!at)
			return -ENOMEM;
		*at = text;
	}
	return m->error;
}

#define TOTALS_AMOUNT(part, name, help)                                                            \
	_Static_assert(offsetof(struct totals, part.name) ==                                       \
			       offsetof(struct totals, amount[CREMA_TOTALS_A_##part##_##name]),    \
		       "parts and their members are in the order of rows.def");
#include "rows.def"

static int feed_totals(struct model *m, struct worker *w, const msgpack_object *map)
{
	struct totals got = {.known = true, .boot_ns = get_u64(map, "boot_ns", 0)}, *t = &got;

	worker_sign(w, t->boot_ns);
	if (take_list(m, &w->notes, get(map, "notes")))
		return -ENOMEM;
	for (size_t i = 0; i < CREMA_TOTALS_NUMBERS; i++)
		t->number[i] = map_uint(map, row_totals[i].name);
	for (size_t i = 0; i < CREMA_TOTALS_AMOUNTS; i++)
		t->amount[i] = map_uint(get(map, row_amounts[i].part), row_amounts[i].name);
	model_take_counters(&t->tasks, get(map, "tasks"));
	model_take_counters(&t->unattributed, get(map, "unattributed"));
	model_take_blocked(&t->blocked, get(map, "blocked"));
	t->sections_outside = map_uint(get(map, "unmeasured"), "outside");
	t->sections_refused = map_uint(get(map, "unmeasured"), "refused");
	t->values_refused = map_uint(get(map, "unmeasured"), "values");
	t->columns_unmeasured = map_uint(get(map, "unmeasured"), "columns");
	t->io_uring = get(map, "io_uring") != NULL;
	if (!w->totals.known || t->boot_ns >= w->totals.boot_ns) {
		if (w->totals.known &&
		    rows_moved_bytes(t->tasks.count) >=
			    rows_moved_bytes(w->totals.tasks.count) + MODEL_MOVED_BYTES)
			w->moved_boot_ns = t->boot_ns;
		w->totals = *t;
	}
	return selection_history(m, w, t, get_u64(map, "snapshot_boot_ns", 0));
}

static bool same_file(const void *item, const void *key)
{
	const struct file_row *a = item, *b = key;

	return a->worker == b->worker && a->path == b->path && a->span == b->span &&
	       a->kind == b->kind;
}

/* The larger of two lists: they only grow. */
static int take_ranges(struct ranges *have, const msgpack_object *list)
{
	struct ranges got = {0};
	int rc = is_nil(list) ? 0 : ranges_unpack(&got, list);

	if (got.bytes > have->bytes) {
		ranges_release(have);
		*have = got;
	} else {
		ranges_release(&got);
	}
	return rc == -ENOMEM ? rc : 0;
}

static int feed_file(struct model *m, struct worker *w, const msgpack_object *map)
{
	struct file_row key = {.worker = w}, *f;
	uint64_t hash;
	bool newest;

	key.path = map_text(m, map, "path");
	key.span = map_text(m, map, "span");
	key.kind = map_text(m, map, "kind");
	hash = hash_pair(hash_pair((uintptr_t)key.path, (uintptr_t)key.span),
			 (uintptr_t)w ^ (uintptr_t)key.kind);
	f = table_find(&m->file_table, hash, same_file, &key);
	if (!f) {
		f = TABLE_NEW(&m->file_table, hash, &m->arena, &m->files);
		if (!f)
			return -ENOMEM;
		*f = key;
	}
	newest = model_is_newest(m, 0, &f->version);
	if (get_text(map, "name").ptr && (newest || !f->name))
		f->name = map_text(m, map, "name");
	if (newest) {
		f->filesystem = map_text(m, map, "filesystem");
		f->storage = map_text(m, map, "storage");
		f->place = file_place(f);
	}
	model_raise(f->number, row_file, CREMA_FILE_VALUES, map, newest);
	if (take_ranges(&f->read, get(map, "ranges")) ||
	    take_ranges(&f->baskets, get(map, "basket_ranges")) ||
	    opened_take(&f->opened, m, get(map, "opened_by")))
		return -ENOMEM;
	return m->error;
}

static bool same_codec(const void *item, const void *key)
{
	const struct codec_row *a = item, *b = key;

	return a->worker == b->worker && a->function == b->function && a->span == b->span;
}

static int feed_codec(struct model *m, struct worker *w, const msgpack_object *map)
{
	struct codec_row key = {.worker = w}, *c;
	uint64_t hash;

	key.function = map_text(m, map, "function");
	key.span = map_text(m, map, "span");
	hash = hash_pair(hash_pair((uintptr_t)key.function, (uintptr_t)key.span), (uintptr_t)w);
	c = table_find(&m->codec_table, hash, same_codec, &key);
	if (!c) {
		c = TABLE_NEW(&m->codec_table, hash, &m->arena, &m->codecs);
		if (!c)
			return -ENOMEM;
		*c = key;
	}
	c->codec = map_text(m, map, "codec");
	c->direction = map_text(m, map, "direction");
	model_raise(c->number, row_codec, CREMA_CODEC_NUMBERS, map,
		    model_is_newest(m, 0, &c->version));
	return m->error;
}

static int feed_goodbye(struct model *m, struct worker *w, const msgpack_object *map)
{
	uint64_t boot_ns = get_u64(map, "boot_ns", 0);

	worker_sign(w, boot_ns);
	if (w->goodbye && boot_ns < w->goodbye_boot_ns)
		return 0;
	w->goodbye = true;
	w->goodbye_boot_ns = boot_ns;
	w->goodbye_how = map_text(m, map, "how");
	w->goodbye_cause = map_text(m, map, "cause");
	w->tasks_in_flight = map_uint(map, "tasks_in_flight");
	return take_list(m, &w->evidence, get(map, "evidence"));
}

static int feed_clocks(struct worker *w, const msgpack_object *map)
{
	uint64_t boot_ns = get_u64(map, "boot_ns", 0), real_ns = get_u64(map, "real_ns", 0);

	worker_sign(w, boot_ns);
	if (!boot_ns || !real_ns)
		return 0;
	return add_clock(w, boot_ns, real_ns + (uint64_t)get_i64(map, "offset_ns", 0), false);
}

int model_feed_map(struct model *m, struct worker *w, uint64_t type, const msgpack_object *map)
{
	if (map->type != MSGPACK_OBJECT_MAP) {
		m->records_bad++;
		return 0;
	}
	switch (type) {
	case CREMA_MSG_SAMPLE:
		return feed_sample(w, map);
	case CREMA_MSG_HOST:
		return feed_host(w, map);
	case CREMA_MSG_TOTALS:
		return feed_totals(m, w, map);
	case CREMA_MSG_FILE:
		return feed_file(m, w, map);
	case CREMA_MSG_CODEC:
		return feed_codec(m, w, map);
	case CREMA_MSG_SERVER:
		return model_feed_server(m, w, map);
	case CREMA_MSG_SECTION:
		return model_feed_section(m, w, map);
	case CREMA_MSG_GAUGE:
		return model_feed_gauge(m, w, map);
	case CREMA_MSG_COLUMN:
		return model_feed_column(m, w, map);
	case CREMA_MSG_GOODBYE:
		return feed_goodbye(m, w, map);
	case CREMA_MSG_CLOCKS:
		return feed_clocks(w, map);
	case CREMA_MSG_DOING:
		return model_feed_doing(w, map);
	case CREMA_MSG_MODULE:
		return model_feed_module(m, map);
	case CREMA_MSG_LINES:
		return model_feed_lines(m, w, map);
	case CREMA_MSG_STACK:
		return model_feed_stack(m, w, map);
	default:
		return 0; /* from a newer agent */
	}
}
