/* SPDX-License-Identifier: BSD-3-Clause */
/* dropped.c - reads and writes the remains of dropped runs, and leaves their records out. */
#include "collector/model/dropped.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/model/model_map.h"
#include "common/frame.h"

static struct value value_of(struct model *m, const msgpack_object *o)
{
	struct text text;
	double d;

	switch (o->type) {
	case MSGPACK_OBJECT_POSITIVE_INTEGER:
		return value_uint(o->via.u64);
	case MSGPACK_OBJECT_NEGATIVE_INTEGER:
		return value_int(o->via.i64);
	case MSGPACK_OBJECT_BOOLEAN:
		return value_bool(o->via.boolean);
	case MSGPACK_OBJECT_STR:
		return object_text(o, &text) ? value_text(model_text(m, text)) : value_null();
	default:
		return object_f64(o, &d) ? value_real(d) : value_null();
	}
}

static int take_values(struct model *m, struct dropped_run *d, const msgpack_object *map)
{
	struct dropped_value *at;
	struct text id;
	uint32_t i;

	for (i = 0; map && map->type == MSGPACK_OBJECT_MAP && i < map->via.map.size; i++) {
		if (!object_text(&map->via.map.ptr[i].key, &id))
			continue;
		at = ARRAY_NEW(&d->values);
		if (!at)
			return -ENOMEM;
		at->id = model_text(m, id);
		at->v = value_of(m, &map->via.map.ptr[i].val);
	}
	return m->error;
}

/* [span, begun, ended, ...] */
static int take_counts(struct model *m, struct dropped_run *d, const msgpack_object *list)
{
	struct span_count *c;
	struct text span;
	uint32_t i;

	if (!list || list->type != MSGPACK_OBJECT_ARRAY)
		return 0;
	for (i = 0; i + 2 < list->via.array.size; i += 3) {
		if (!object_text(&list->via.array.ptr[i], &span))
			continue;
		c = ARRAY_NEW(&d->counts);
		if (!c)
			return -ENOMEM;
		*c = (struct span_count){.span = model_text(m, span)};
		object_u64(&list->via.array.ptr[i + 1], &c->begun);
		object_u64(&list->via.array.ptr[i + 2], &c->ended);
	}
	return 0;
}

static int take_run(struct model *m, struct dropped_runs *list, const msgpack_object *map)
{
	struct dropped_run *d, **at = ARRAY_NEW(list);
	const msgpack_object *spans = get(map, "spans");
	const char **span;
	struct text text;
	uint32_t i;

	d = at ? arena_get(&m->arena, sizeof(*d)) : NULL;
	if (!d) {
		list->n -= at != NULL;
		return -ENOMEM;
	}
	*at = d;
	d->id = map_text(m, map, "run");
	d->kind = map_text(m, map, "kind");
	d->why = map_text(m, map, "why");
	d->by = map_text(m, map, "by");
	d->state = map_text(m, map, "state");
	d->chunk_attempts = get_u64(map, "chunk_attempts", 0);
	d->plain = get_u64(map, "plain", 0) != 0;
	d->start_ns = get_u64(map, "start_ns", 0);
	d->stop_ns = get_u64(map, "stop_ns", 0);
	d->dropped_ns = get_u64(map, "dropped_ns", 0);
	for (i = 0; spans && spans->type == MSGPACK_OBJECT_ARRAY && i < spans->via.array.size;
	     i++) {
		if (!object_text(&spans->via.array.ptr[i], &text))
			continue;
		span = ARRAY_NEW(&d->spans);
		if (!span)
			return -ENOMEM;
		*span = model_text(m, text);
	}
	if (!d->id || !d->kind || !d->why) {
		m->records_bad++;
		list->n--;
	}
	if (take_counts(m, d, get(map, "counts")))
		return -ENOMEM;
	return take_values(m, d, get(map, "metrics"));
}

int dropped_feed(struct model *m, const struct crema_frame_header *head, const msgpack_object *root)
{
	const msgpack_object *streams;
	struct worker *w;
	int rc;

	if (head->type == CREMA_FRAME_DROPPED) {
		m->below_ns = get_u64(root, "below_ns", 0);
		return 0;
	}
	if (head->type == CREMA_FRAME_DROPPED_RUN)
		return take_run(m, &m->dropped, root);
	if (head->type == CREMA_FRAME_RUN_TOTALS)
		return take_run(m, &m->totals, root);
	/* The others ended in dropped segments: only the collector's sums still include them. */
	if (!head->first_seq)
		return 0;
	w = model_worker(m, head->worker);
	streams = get(root, "streams");
	rc = !w ? -ENOMEM : streams ? worker_take_streams(w, streams) : 0;
	m->records_bad += rc == -EBADMSG;
	return rc == -EBADMSG ? 0 : rc;
}

/* Filtering */

struct dropped_span {
	const char *span;
	const struct dropped_run *run;
	struct dropped_span *next; /* of the same span: only runs without Dask share one */
};

static bool same_span(const void *item, const void *key)
{
	return ((const struct dropped_span *)item)->span == key;
}

static bool in_window(const struct dropped_run *d, const struct attempt *a)
{
	return a->begin_ns + DROPPED_WINDOW_NS >= d->start_ns &&
	       a->begin_ns <= d->stop_ns + DROPPED_WINDOW_NS;
}

static int index_spans(struct model *m, struct table *index)
{
	struct dropped_span *first, *s;
	size_t i, j;

	for (i = 0; i < m->dropped.n; i++) {
		const struct dropped_run *d = m->dropped.v[i];

		for (j = 0; j < d->spans.n; j++) {
			uint64_t hash = hash_pair((uintptr_t)d->spans.v[j], 1);

			s = arena_get(&m->arena, sizeof(*s));
			if (!s)
				return -ENOMEM;
			s->span = d->spans.v[j];
			s->run = d;
			first = table_find(index, hash, same_span, s->span);
			if (first) {
				s->next = first->next;
				first->next = s;
			} else if (table_add(index, hash, s)) {
				return -ENOMEM;
			}
		}
	}
	return 0;
}

static bool is_dropped(const struct model *m, const struct table *index, const struct attempt *a)
{
	const struct dropped_span *s;
	size_t i;

	if (a->span) {
		s = table_find(index, hash_pair((uintptr_t)a->span, 1), same_span, a->span);
		for (; s; s = s->next) {
			if (!s->run->plain || in_window(s->run, a))
				return true;
		}
		return false;
	}
	for (i = 0; i < m->dropped.n; i++) {
		if (!m->dropped.v[i]->spans.n && in_window(m->dropped.v[i], a))
			return true;
	}
	return false;
}

int dropped_filter(struct model *m)
{
	struct table index = {0};
	size_t i, kept = 0;
	int rc;

	if (!m->dropped.n)
		return 0;
	rc = index_spans(m, &index);
	for (i = 0; i < m->attempts.n && !rc; i++) {
		if (!is_dropped(m, &index, m->attempts.v[i]))
			m->attempts.v[kept++] = m->attempts.v[i];
	}
	if (!rc) {
		m->dropped_attempts = m->attempts.n - kept;
		m->attempts.n = kept;
	}
	table_release(&index);
	return rc;
}

static void release(struct dropped_runs *list)
{
	size_t i;

	for (i = 0; i < list->n; i++) {
		free(list->v[i]->spans.v);
		free(list->v[i]->values.v);
		free(list->v[i]->counts.v);
	}
	free(list->v);
}

void dropped_release(struct model *m)
{
	release(&m->dropped);
	release(&m->totals);
}

/* Lookup */

const struct dropped_run *dropped_find(const struct model *m, const char *which)
{
	const struct dropped_run *found = NULL, *d;
	size_t i, j, n, len;

	if (!which || !*which || !strcmp(which, "last"))
		return NULL;
	n = strlen(which);
	for (i = 0; i < m->dropped.n; i++) {
		d = m->dropped.v[i];
		len = strlen(d->id);
		if (!strcmp(d->id, which))
			return d;
		for (j = 0; j < d->spans.n; j++) {
			if (!strcmp(d->spans.v[j], which))
				return d;
		}
		if (n > len ||
		    (strncmp(d->id, which, n) != 0 && strcmp(d->id + len - n, which) != 0))
			continue;
		if (found)
			return NULL;
		found = d;
	}
	return found;
}

struct value dropped_value(const struct dropped_run *d, const char *id)
{
	size_t i;

	for (i = 0; i < d->values.n; i++) {
		if (d->values.v[i].id && !strcmp(d->values.v[i].id, id))
			return d->values.v[i].v;
	}
	return value_null();
}

/* Writing */

static void pack_value(msgpack_packer *pk, struct value v)
{
	switch (v.type) {
	case VALUE_UINT:
		pack_u64(pk, v.v.u);
		break;
	case VALUE_INT:
		pack_i64(pk, v.v.i);
		break;
	case VALUE_REAL:
		pack_f64(pk, v.v.d);
		break;
	case VALUE_BOOL:
		pack_bool(pk, v.v.b);
		break;
	case VALUE_TEXT:
		pack_text(pk, v.v.s);
		break;
	default:
		pack_nil(pk);
	}
}

static void pack_counts(msgpack_packer *pk, const struct dropped_run *d)
{
	size_t i;

	pack_text(pk, "counts");
	pack_array(pk, 3 * d->counts.n);
	for (i = 0; i < d->counts.n; i++) {
		pack_text(pk, d->counts.v[i].span);
		pack_u64(pk, d->counts.v[i].begun);
		pack_u64(pk, d->counts.v[i].ended);
	}
}

int dropped_pack(const struct dropped_run *d, uint8_t type, struct buf *out)
{
	struct crema_frame_header head = frame_head(type, NULL, 0);
	struct packed_map map;
	msgpack_packer *pk = packed_map_begin(&map);
	size_t i;

	pack_kv_text(pk, "run", d->id);
	pack_kv_text(pk, "kind", d->kind);
	pack_kv_text(pk, "why", d->why);
	pack_kv_text(pk, "by", d->by);
	pack_kv_text(pk, "state", d->state);
	pack_kv_u64(pk, "chunk_attempts", d->chunk_attempts);
	if (type == CREMA_FRAME_RUN_TOTALS)
		pack_counts(pk, d);
	pack_kv_u64(pk, "plain", d->plain);
	pack_kv_u64(pk, "start_ns", d->start_ns);
	pack_kv_u64(pk, "stop_ns", d->stop_ns);
	pack_kv_u64(pk, "dropped_ns", d->dropped_ns);
	pack_text(pk, "spans");
	pack_array(pk, d->spans.n);
	for (i = 0; i < d->spans.n; i++)
		pack_text(pk, d->spans.v[i]);
	pack_text(pk, "metrics");
	pack_map(pk, d->values.n);
	for (i = 0; i < d->values.n; i++) {
		pack_text(pk, d->values.v[i].id);
		pack_value(pk, d->values.v[i].v);
	}
	return frame_encode_buf(out, &head, packed_map_end(&map));
}
