/* SPDX-License-Identifier: BSD-3-Clause */
/* model_stacks.c - long waits by their origin. */
#include "collector/model/model_stacks.h"

#include <errno.h>
#include <string.h>

#include "collector/model/selection.h"

static bool same_module(const void *item, const void *key)
{
	return ((const struct site_module *)item)->id == *(const uint64_t *)key;
}

const struct site_module *model_module(const struct model *m, uint64_t id)
{
	return table_find(&m->module_table, hash_pair(id, 3), same_module, &id);
}

int model_feed_module(struct model *m, const msgpack_object *map)
{
	struct site_module *s;
	uint64_t id;

	if (!object_u64(get(map, "id"), &id) || !id) {
		m->records_bad++;
		return 0;
	}
	if (model_module(m, id))
		return 0;
	s = arena_get(&m->arena, sizeof(*s));
	if (!s || table_add(&m->module_table, hash_pair(id, 3), s))
		return -ENOMEM;
	s->id = id;
	s->path = model_text(m, get_text(map, "path"));
	s->build_id = model_text(m, get_text(map, "build_id"));
	return m->error;
}

/* Adds the number to those received; *first false: it was there already. */
static int first_time(struct worker *w, uint64_t number, bool *first)
{
	const struct stream *s = &w->stacks;
	size_t i;

	for (i = s->ranges.n; i > 0 && s->ranges.v[i - 1].from > number; i--)
		;
	*first = !i || s->ranges.v[i - 1].to <= number;
	return *first ? stream_received(&w->stacks, number, number + 1) : 0;
}

static bool take_frames(const msgpack_object *list, struct site_frame *frame, uint32_t *depth)
{
	*depth = 0;
	if (!list || list->type != MSGPACK_OBJECT_ARRAY || list->via.array.size % 2 ||
	    list->via.array.size > 2 * MODEL_FRAMES)
		return false;
	for (uint32_t i = 0; i < list->via.array.size / 2; i++) {
		if (!object_u64(&list->via.array.ptr[2 * i], &frame[i].module) ||
		    !object_u64(&list->via.array.ptr[2 * i + 1], &frame[i].place))
			return false;
		*depth = i + 1;
	}
	return true;
}

static bool take_wait(const msgpack_object *map, enum crema_time_id *wait)
{
	struct text name = get_text(map, "wait");

	for (unsigned int i = 0; i < CREMA_TIMES; i++) {
		if (text_is(name, task_name(TASK_FIELDS + i))) {
			*wait = (enum crema_time_id)i;
			return true;
		}
	}
	return false;
}

static bool same_site(const void *item, const void *key)
{
	const struct site *a = item, *b = key;

	return a->span == b->span && a->prefix == b->prefix && a->file == b->file &&
	       a->peer == b->peer && a->on == b->on && a->wait == b->wait && a->depth == b->depth &&
	       a->python == b->python && a->python_cut == b->python_cut &&
	       !memcmp(a->frame, b->frame, a->depth * sizeof(*a->frame));
}

static struct site *site_of(struct model *m, const struct site *key)
{
	uint64_t hash = hash_bytes(7, key->frame, key->depth * sizeof(*key->frame));
	struct site_frame *frame;
	struct site *s;

	hash = hash_pair(hash, (uintptr_t)key->prefix ^ (uintptr_t)key->span * 3);
	hash = hash_pair(hash, (uintptr_t)key->file ^ (uintptr_t)key->peer ^ key->wait);
	hash = hash_pair(hash, (uintptr_t)key->python);
	s = table_find(&m->site_table, hash, same_site, key);
	if (s || m->sites.n >= MODEL_SITES)
		return s;
	frame = arena_get(&m->arena, key->depth * sizeof(*frame) + 1);
	s = frame ? TABLE_NEW(&m->site_table, hash, &m->arena, &m->sites) : NULL;
	if (!s) {
		m->error = -ENOMEM;
		return NULL;
	}
	*s = *key;
	memcpy(frame, key->frame, key->depth * sizeof(*frame));
	s->frame = frame;
	return s;
}

/* NULL: not named, or not known. */
static const struct line_stack *named_row(const struct model *m, struct worker *w,
					  const msgpack_object *map, const char *name)
{
	uint64_t table, number;

	if (!object_u64(get(map, "lines_table"), &table) || !object_u64(get(map, name), &number))
		return NULL;
	return model_line_stack(m, w, table, number);
}

static void take_python(const struct model *m, struct worker *w, const msgpack_object *map,
			struct site *key)
{
	const struct line_stack *row = named_row(m, w, map, "lines_row");

	key->python = row ? row->list : NULL;
	key->python_cut = row && row->outer_cut;
	row = named_row(m, w, map, "holder_row");
	key->holder.python = row ? row->list : NULL;
	key->holder.samples = get_u64(map, "holder_samples", 0);
	key->holder.of = get_u64(map, "holder_of", 0);
}

int model_feed_stack(struct model *m, struct worker *w, const msgpack_object *map)
{
	struct site_frame frame[MODEL_FRAMES];
	struct site key = {.frame = frame}, *s;
	struct waits *waits;
	uint64_t number, ns;
	bool first;

	if (!object_u64(get(map, "number"), &number) || number == UINT64_MAX ||
	    !object_u64(get(map, "waited_ns"), &ns) || !take_wait(map, &key.wait) ||
	    !take_frames(get(map, "frames"), frame, &key.depth)) {
		m->records_bad++;
		return 0;
	}
	worker_sign(w, get_u64(map, "end_boot_ns", 0));
	if (first_time(w, number, &first))
		return -ENOMEM;
	if (!first)
		return 0;
	if (!selection_takes_stack(m->selection, get_text(map, "span")))
		return 0;
	key.span = model_text(m, get_text(map, "span"));
	key.prefix = model_text(m, get_text(map, "prefix"));
	key.file = model_text(m, get_text(map, "file"));
	key.peer = model_text(m, get_text(map, "peer"));
	key.on = model_text(m, get_text(map, "on"));
	take_python(m, w, map, &key);
	s = site_of(m, &key);
	if (m->error)
		return m->error;
	waits = s ? &s->waits : &m->sites_cut;
	waits->calls++;
	waits->ns += ns;
	if (s && ns > waits->longest_ns)
		s->holder = key.holder;
	if (ns > waits->longest_ns)
		waits->longest_ns = ns;
	return 0;
}

void model_take_blocked(struct blocked_totals *b, const msgpack_object *map)
{
	const msgpack_object *calls = get(map, "calls"), *ns = get(map, "ns");

	memset(b, 0, sizeof(*b));
	b->known = object_u64(get(map, "threshold_ns"), &b->threshold_ns);
	b->recorded = get_u64(map, "recorded", 0);
	for (unsigned int i = 0; i < CREMA_TIMES; i++) {
		b->calls[i] = get_u64(calls, task_name(TASK_FIELDS + i), 0);
		b->ns[i] = get_u64(ns, task_name(TASK_FIELDS + i), 0);
	}
}
