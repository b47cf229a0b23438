/* SPDX-License-Identifier: BSD-3-Clause */
/* model_lines.c - LINES messages. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/model/model_map.h"
#include "collector/model/selection.h"
#include "common/rows.h"

#define PLACE_PARTS 4u /* of each place on the wire: function, file, line, user */

struct places {
	const struct line_place **v;
	uint32_t n;
};

static bool same_place(const void *item, const void *key)
{
	const struct line_place *a = item, *b = key;

	return a->function == b->function && a->file == b->file && a->line == b->line &&
	       a->user == b->user;
}

static const struct line_place *place_of(struct model *m, const struct line_place *key)
{
	uint64_t hash = hash_pair((uintptr_t)key->function ^ key->line, (uintptr_t)key->file);
	struct line_place *p = table_find(&m->lines.place_table, hash, same_place, key);

	if (p)
		return p;
	p = arena_get(&m->arena, sizeof(*p));
	if (!p || table_add(&m->lines.place_table, hash, p)) {
		m->error = -ENOMEM;
		return NULL;
	}
	*p = *key;
	return p;
}

/* False: not a place. */
static bool take_place(struct model *m, const msgpack_object *part, const struct line_place **out)
{
	struct line_place key = {.line = 0};
	struct text function, file;

	if (!object_text(&part[0], &function) || !object_text(&part[1], &file) ||
	    !object_u64(&part[2], &key.line) || part[3].type != MSGPACK_OBJECT_BOOLEAN)
		return false;
	key.function = model_text(m, function);
	key.file = model_text(m, file);
	key.user = part[3].via.boolean;
	*out = m->error ? NULL : place_of(m, &key);
	return true;
}

static int take_places(struct model *m, const msgpack_object *list, struct places *out)
{
	uint32_t n = list && list->type == MSGPACK_OBJECT_ARRAY ? list->via.array.size : 0;

	if (n % PLACE_PARTS)
		return -EBADMSG;
	out->n = n / PLACE_PARTS;
	out->v = calloc(out->n + 1u, sizeof(struct line_place *));
	if (!out->v)
		return -ENOMEM;
	for (uint32_t i = 0; i < out->n; i++)
		if (!take_place(m, &list->via.array.ptr[PLACE_PARTS * i], &out->v[i]))
			return -EBADMSG;
	return m->error;
}

static bool same_list(const void *item, const void *key)
{
	const struct line_list *a = item, *b = key;

	return a->depth == b->depth && !memcmp(a->place, b->place, a->depth * sizeof(*a->place));
}

/* NULL: not a list, or no memory. */
static const struct line_list *list_of(struct model *m, const msgpack_object *frames,
				       const struct places *places)
{
	const struct line_place *place[MODEL_LINE_DEPTH], **own;
	struct line_list key = {.place = place}, *l;
	uint64_t at, hash;
	size_t bytes;

	if (!frames || frames->type != MSGPACK_OBJECT_ARRAY ||
	    frames->via.array.size > MODEL_LINE_DEPTH)
		return NULL;
	key.depth = frames->via.array.size;
	for (uint32_t i = 0; i < key.depth; i++) {
		if (!object_u64(&frames->via.array.ptr[i], &at) || at >= places->n)
			return NULL;
		place[i] = places->v[at];
	}
	bytes = key.depth * sizeof(*place);
	hash = hash_bytes(11, place, bytes);
	l = table_find(&m->lines.list_table, hash, same_list, &key);
	if (l)
		return l;
	l = arena_get(&m->arena, sizeof(*l));
	own = arena_get(&m->arena, bytes + 1);
	if (!l || !own || table_add(&m->lines.list_table, hash, l)) {
		m->error = -ENOMEM;
		return NULL;
	}
	memcpy(own, place, bytes);
	*l = (struct line_list){key.depth, own};
	return l;
}

static void take_classes(const msgpack_object *map, uint64_t *v)
{
	for (unsigned int i = 0; i < LINE_CLASSES_TOLD; i++)
		v[i] = get_u64(map, i < CREMA_TIMES ? row_times[i].id : "other", 0);
}

static void take_bytes(const msgpack_object *map, struct line_numbers *n)
{
	const msgpack_object *samples = get(map, "byte_samples"), *bytes = get(map, "bytes");
	const msgpack_object *variance = get(map, "byte_variance");

	for (unsigned int i = 0; i < CREMA_LINES_BYTES; i++) {
		n->byte_samples[i] = get_u64(samples, row_line_bytes[i].id, 0);
		n->bytes[i] = get_u64(bytes, row_line_bytes[i].id, 0);
		n->byte_variance[i] = get_f64(variance, row_line_bytes[i].id, 0);
	}
}

static void take_waits(const msgpack_object *map, struct line_numbers *n)
{
	const msgpack_object *waits = get(map, "waits"), *ns = get(map, "waited_ns");

	for (unsigned int i = 0; i < CREMA_TIMES; i++) {
		n->waits[i] = get_u64(waits, row_times[i].id, 0);
		n->waited_ns[i] = get_u64(ns, row_times[i].id, 0);
	}
}

static bool same_peak(const void *item, const void *key)
{
	const struct line_peak *a = item, *b = key;

	return a->worker == b->worker && a->span == b->span;
}

/* NULL: no memory. */
static struct line_peak *peak_of(struct model *m, const struct line_stack *row)
{
	struct line_peak key = {.worker = row->worker, .span = row->span}, *p;
	uint64_t hash = hash_pair((uintptr_t)key.worker, (uintptr_t)key.span);

	p = table_find(&m->lines.peak_table, hash, same_peak, &key);
	if (p)
		return p;
	p = arena_get(&m->arena, sizeof(*p));
	if (!p || table_add(&m->lines.peak_table, hash, p)) {
		m->error = -ENOMEM;
		return NULL;
	}
	*p = key;
	return p;
}

static void take_large(struct model *m, struct line_stack *row, const msgpack_object *map)
{
	struct line_peak *peak;

	row->n.large_changes = get_u64(map, "changes", 0);
	row->n.large_epoch = get_u64(map, "epoch", 0);
	for (unsigned int i = 0; i < CREMA_LINES_LARGE; i++)
		row->n.large[i] = get_i64(map, row_line_large[i].id, 0);
	peak = row->n.large_changes ? peak_of(m, row) : NULL;
	if (peak && row->n.large_epoch > peak->epoch)
		peak->epoch = row->n.large_epoch;
	row->peak = peak;
}

/* Larger in a newer message. */
static uint64_t sum_of(const struct line_numbers *n)
{
	uint64_t sum = n->held_samples + n->large_changes;

	for (unsigned int i = 0; i < LINE_CLASSES_TOLD; i++)
		sum += n->samples[i];
	for (unsigned int i = 0; i < CREMA_LINES_BYTES; i++)
		sum += n->byte_samples[i];
	for (unsigned int i = 0; i < CREMA_TIMES; i++)
		sum += n->waits[i] + n->waited_ns[i];
	return sum;
}

static bool same_row(const void *item, const void *key)
{
	const struct line_stack *a = item, *b = key;

	return a->worker == b->worker && a->table == b->table && a->number == b->number;
}

static uint64_t row_hash(const struct line_stack *row)
{
	return hash_pair(hash_bytes(13, row->worker->id, sizeof(row->worker->id)),
			 hash_pair(row->table, row->number));
}

const struct line_stack *model_line_stack(const struct model *m, struct worker *w, uint64_t table,
					  uint64_t number)
{
	const struct line_stack key = {.worker = w, .table = table, .number = number};

	return table_find(&m->lines.row_table, row_hash(&key), same_row, &key);
}

static int take_row(struct model *m, const struct line_stack *like, const msgpack_object *map,
		    const struct places *places)
{
	const msgpack_object *pool = get(map, "pool");
	struct line_stack key = *like, *row;
	uint64_t hash;

	key.list = list_of(m, get(map, "frames"), places);
	if (m->error)
		return m->error;
	if (!object_u64(get(map, "number"), &key.number) || !key.list || !pool ||
	    pool->type != MSGPACK_OBJECT_BOOLEAN) {
		m->records_bad++;
		return 0;
	}
	key.pool = pool->via.boolean;
	key.outside = get_true(map, "outside");
	key.outer_cut = get_true(map, "outer_cut");
	key.prefix = model_text(m, get_text(map, "prefix"));
	key.dataset = map_text(m, map, "dataset");
	key.why = model_text(m, get_text(map, "why"));
	key.n.cut = get_u64(map, "cut", 0);
	key.n.clock_cpu_ns = get_u64(map, "clock_cpu_ns", 0);
	key.n.clock_runqueue_ns = get_u64(map, "clock_runqueue_ns", 0);
	key.n.held_samples = get_u64(map, "held_samples", 0);
	key.n.held_ns = get_u64(map, "held_ns", 0);
	take_bytes(map, &key.n);
	take_waits(map, &key.n);
	take_large(m, &key, get(map, "large"));
	take_classes(get(map, "samples"), key.n.samples);
	take_classes(get(map, "ns"), key.n.ns);
	hash = row_hash(&key);
	row = table_find(&m->lines.row_table, hash, same_row, &key);
	if (row) {
		if (sum_of(&key.n) > sum_of(&row->n)) {
			row->n = key.n;
			row->peak = key.peak;
		}
		return m->error;
	}
	if (m->lines.rows.n >= MODEL_LINES) {
		key.worker->lines.cut = true;
		return m->error;
	}
	row = TABLE_NEW(&m->lines.row_table, hash, &m->arena, &m->lines.rows);
	if (!row)
		return -ENOMEM;
	*row = key;
	return m->error;
}

static void take_told(struct model *m, struct lines_told *t, const msgpack_object *map)
{
	uint64_t boot_ns = get_u64(map, "boot_ns", 0);

	if (t->known && boot_ns < t->boot_ns)
		return;
	t->known = true;
	t->boot_ns = boot_ns;
	t->state = model_text(m, get_text(map, "state"));
	t->clocks = get_true(map, "clocks");
	t->interval_ns = get_u64(map, "interval_ns", 0);
	t->large_bytes = get_u64(map, "large_bytes", 0);
	t->cpu_ns = get_u64(map, "cpu_ns", 0);
}

int model_feed_lines(struct model *m, struct worker *w, const msgpack_object *map)
{
	const msgpack_object *rows = get(map, "rows");
	struct line_stack like = {.worker = w};
	struct places places = {NULL, 0};
	int rc;

	if (!rows || rows->type != MSGPACK_OBJECT_ARRAY ||
	    !object_u64(get(map, "table"), &like.table)) {
		m->records_bad++;
		return 0;
	}
	worker_sign(w, get_u64(map, "boot_ns", 0));
	take_told(m, &w->lines, map);
	if (!selection_takes_stack(m->selection, get_text(map, "span")))
		return m->error;
	like.span = model_text(m, get_text(map, "span"));
	rc = m->error ? m->error : take_places(m, get(map, "places"), &places);
	for (uint32_t i = 0; !rc && i < rows->via.array.size; i++)
		rc = take_row(m, &like, &rows->via.array.ptr[i], &places);
	free(places.v);
	m->records_bad += rc == -EBADMSG;
	return rc == -EBADMSG ? 0 : rc;
}

void model_lines_release(struct lines_model *l)
{
	free(l->rows.v);
	table_release(&l->place_table);
	table_release(&l->list_table);
	table_release(&l->row_table);
	table_release(&l->peak_table);
}
