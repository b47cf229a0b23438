/* SPDX-License-Identifier: BSD-3-Clause */
/* pylines_send.c - LINES messages: rows of one span, with their places. */
#include <string.h>

#include "agent/pylines.h"
#include "common/rows.h"
#include "common/utf8.h"

#define ROWS_PER_MESSAGE 64u

/* Each message numbers its places in the order in which its rows name them. */
struct message {
	uint16_t number[PYLINE_PLACES]; /* + 1; 0: not in it */
	uint16_t place[PYLINE_PLACES];
	uint32_t places;
	uint16_t row[ROWS_PER_MESSAGE];
	uint32_t rows;
};

static void name_places(const struct pyline_table *t, struct message *m)
{
	m->places = 0;
	memset(m->number, 0, sizeof(m->number));
	for (uint32_t i = 0; i < m->rows; i++) {
		const struct pyline_row *r = &t->row[m->row[i]];

		for (uint32_t k = 0; k < r->depth; k++) {
			uint16_t p = t->frame[r->first + k];

			if (m->number[p])
				continue;
			m->place[m->places++] = p;
			m->number[p] = (uint16_t)m->places;
		}
	}
}

static void pack_name(msgpack_packer *pk, const char *s)
{
	pack_str(pk, s, utf8_whole(s, strlen(s)));
}

static void pack_places(msgpack_packer *pk, const struct pyline_table *t, const struct message *m)
{
	pack_text(pk, "places");
	pack_array(pk, (size_t)4 * m->places);
	for (uint32_t i = 0; i < m->places; i++) {
		const struct pyline_place *p = &t->place[m->place[i]];

		pack_name(pk, t->text + p->function);
		pack_name(pk, t->text + p->file);
		pack_u64(pk, p->line);
		pack_bool(pk, p->user);
	}
}

/* By class; pairs that are 0 are left out. */
static void pack_classes(msgpack_packer *pk, const struct pyline_row *r)
{
	size_t map;

	pack_text(pk, "samples");
	map = pack_map_begin(pk);
	for (unsigned int i = 0; i < PYLINE_CLASSES; i++)
		if (r->samples[i])
			pack_kv_u64(pk, i < CREMA_TIMES ? row_times[i].id : "other", r->samples[i]);
	pack_map_end(pk, map);
	pack_text(pk, "ns");
	map = pack_map_begin(pk);
	for (unsigned int i = 0; i < PYLINE_CLASSES; i++)
		if (r->ns[i])
			pack_kv_u64(pk, i < CREMA_TIMES ? row_times[i].id : "other", r->ns[i]);
	pack_map_end(pk, map);
}

/* Kinds without samples are left out, and so are the maps if no kind has any. */
static void pack_bytes(msgpack_packer *pk, const struct pyline_row *r)
{
	static const char *const maps[] = {"byte_samples", "bytes", "byte_variance"};
	bool any = false;
	size_t map;

	for (unsigned int i = 0; i < CREMA_LINES_BYTES; i++)
		any = any || r->byte_samples[i];
	for (unsigned int k = 0; k < sizeof(maps) / sizeof(*maps) && any; k++) {
		pack_text(pk, maps[k]);
		map = pack_map_begin(pk);
		for (unsigned int i = 0; i < CREMA_LINES_BYTES; i++) {
			if (!r->byte_samples[i])
				continue;
			if (k == 2)
				pack_kv_f64(pk, row_line_bytes[i].id, r->byte_variance[i]);
			else
				pack_kv_u64(pk, row_line_bytes[i].id,
					    k ? r->bytes[i] : r->byte_samples[i]);
		}
		pack_map_end(pk, map);
	}
}

/* By class; classes without long waits are left out, and so are the maps if no class has any. */
static void pack_waits(msgpack_packer *pk, const struct pyline_row *r)
{
	static const char *const maps[] = {"waits", "waited_ns"};
	bool any = false;
	size_t map;

	for (unsigned int i = 0; i < CREMA_TIMES; i++)
		any = any || r->waits[i] || r->waited_ns[i];
	for (unsigned int k = 0; k < sizeof(maps) / sizeof(*maps) && any; k++) {
		pack_text(pk, maps[k]);
		map = pack_map_begin(pk);
		for (unsigned int i = 0; i < CREMA_TIMES; i++)
			if (r->waits[i] || r->waited_ns[i])
				pack_kv_u64(pk, row_times[i].id, k ? r->waited_ns[i] : r->waits[i]);
		pack_map_end(pk, map);
	}
}

static void pack_large(msgpack_packer *pk, const struct pyline_row *r)
{
	size_t map;

	if (!r->large_changes)
		return;
	pack_text(pk, "large");
	map = pack_map_begin(pk);
	pack_kv_u64(pk, "changes", r->large_changes);
	pack_kv_u64(pk, "epoch", r->large_epoch);
	for (unsigned int i = 0; i < CREMA_LINES_LARGE; i++)
		pack_kv_i64(pk, row_line_large[i].id, r->large[i]);
	pack_map_end(pk, map);
}

static void pack_row(const struct pylines *l, msgpack_packer *pk, const struct message *m,
		     uint32_t number)
{
	static const char *const why[] = {NULL, "torn", "none", "full"};
	const struct pyline_table *t = l->table;
	const struct pyline_row *r = &t->row[number];
	struct text prefix = view_text(l->view, r->prefix);
	struct text dataset = view_text(l->view, r->dataset);
	size_t map = pack_map_begin(pk);

	pack_kv_u64(pk, "number", number);
	pack_kv_str(pk, "prefix", prefix.ptr, prefix.len);
	if (dataset.len)
		pack_kv_str(pk, "dataset", dataset.ptr, dataset.len);
	pack_text(pk, "pool");
	pack_bool(pk, r->pool);
	pack_kv_true(pk, "outside", r->outside);
	pack_kv_text(pk, "why", why[r->why]);
	pack_kv_u64(pk, "cut", r->cut);
	pack_kv_u64(pk, "clock_cpu_ns", r->clock_cpu_ns);
	pack_kv_u64(pk, "clock_runqueue_ns", r->clock_runqueue_ns);
	pack_classes(pk, r);
	if (r->held_samples) {
		pack_kv_u64(pk, "held_samples", r->held_samples);
		pack_kv_u64(pk, "held_ns", r->held_ns);
	}
	pack_bytes(pk, r);
	pack_waits(pk, r);
	pack_kv_true(pk, "outer_cut", r->outer_cut);
	pack_large(pk, r);
	pack_text(pk, "frames");
	pack_array(pk, r->depth);
	for (uint32_t i = 0; i < r->depth; i++)
		pack_u64(pk, m->number[t->frame[r->first + i]] - 1u);
	pack_map_end(pk, map);
}

static void send_message(struct pylines *l, const struct message *m, bool last, uint64_t boot_ns)
{
	enum outbox_class class = last ? OUTBOX_RECORD : OUTBOX_LIGHT;
	msgpack_packer *pk = outbox_begin_map(l->out, class, CREMA_MSG_LINES);
	struct text span = {NULL, 0};

	if (m->rows)
		span = view_text(l->view, l->table->row[m->row[0]].span);
	pack_kv_u64(pk, "boot_ns", boot_ns);
	pack_kv_u64(pk, "table", l->table_id);
	pack_kv_str(pk, "span", span.ptr, span.len);
	pack_kv_text(pk, "state", l->state);
	pack_kv_u64(pk, "interval_ns", l->interval_ns);
	pack_kv_u64(pk, "cpu_ns", l->cpu_ns);
	pack_kv_u64(pk, "large_bytes", l->view->shm->large_bytes);
	pack_text(pk, "clocks");
	pack_bool(pk, l->clocks);
	if (m->rows)
		pack_places(pk, l->table, m);
	pack_text(pk, "rows");
	pack_array(pk, m->rows);
	for (uint32_t i = 0; i < m->rows; i++)
		pack_row(l, pk, m, m->row[i]);
	outbox_end_map(l->out, class);
	l->sent_state = l->state;
}

/* Collects changed rows with the same span as the first one. */
static bool gather(struct pylines *l, struct message *m)
{
	struct pyline_table *t = l->table;

	m->rows = 0;
	for (uint32_t i = 0; t && i < t->rows && m->rows < ROWS_PER_MESSAGE; i++) {
		struct pyline_row *r = &t->row[i];

		if (!r->changed || (m->rows && r->span != t->row[m->row[0]].span))
			continue;
		r->changed = false;
		m->row[m->rows++] = (uint16_t)i;
	}
	name_places(t, m);
	return m->rows != 0;
}

void pylines_tell(struct pylines *l, struct pyline_row *r, uint64_t boot_ns)
{
	static struct message m; /* one thread */

	if (r->told)
		return;
	r->told = true;
	m.rows = 1;
	m.row[0] = (uint16_t)(r - l->table->row);
	name_places(l->table, &m);
	send_message(l, &m, true, boot_ns);
}

void pylines_forget(struct pylines *l)
{
	for (uint32_t i = 0; l->table && i < l->table->rows; i++) {
		l->table->row[i].changed = true;
		l->table->row[i].told = false;
	}
	l->unsent = true;
}

/* Waiting for the worker's Python: nothing to report yet. */
static bool is_waiting(const struct pylines *l)
{
	return !strcmp(l->state, "waiting");
}

void pylines_send(struct pylines *l, bool last, uint64_t mono_ns, uint64_t boot_ns)
{
	static struct message m; /* one thread */
	bool quiet = l->unsent && mono_ns - l->busy_ns > PYLINES_QUIET_NS;

	bool full = l->table && l->table->full && mono_ns - l->sent_ns >= PYLINES_FULL_NS;
	bool news = l->state != l->sent_state && !is_waiting(l);

	if (!news &&
	    !(l->unsent && (last || quiet || full || mono_ns - l->sent_ns >= PYLINES_SEND_NS)))
		return;
	l->sent_ns = mono_ns;
	l->unsent = false;
	if (!gather(l, &m)) {
		send_message(l, &m, last, boot_ns);
		return;
	}
	do
		send_message(l, &m, last || full, boot_ns);
	while (gather(l, &m));
	if (full) {
		pyline_table_clear(l->table);
		l->table_id++;
	}
}
