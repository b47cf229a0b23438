/* SPDX-License-Identifier: BSD-3-Clause */
/* rows_sections.c - SECTION and GAUGE messages: what tasks' own code has named and recorded. */
#include "agent/rows.h"
#include "common/rows.h"

static void pack_identity(const struct rows *r, msgpack_packer *pk, uint32_t path, uint32_t span,
			  uint32_t prefix)
{
	struct text p = view_text(r->view, path), s = view_text(r->view, span);
	struct text x = view_text(r->view, prefix);

	pack_kv_str(pk, "path", p.ptr, p.len);
	pack_kv_str(pk, "span", s.ptr, s.len);
	pack_kv_str(pk, "prefix", x.ptr, x.len);
}

/* From the first bucket that is not empty to the last. */
static void pack_walls(msgpack_packer *pk, const struct crema_section *s)
{
	uint32_t first = 0, end = CREMA_WALL_BUCKETS;

	while (first < end && !s->wall_bucket[first])
		first++;
	while (end > first && !s->wall_bucket[end - 1])
		end--;
	pack_text(pk, "wall_buckets");
	pack_array(pk, 1 + end - first);
	for (pack_u64(pk, first); first < end; first++)
		pack_u64(pk, s->wall_bucket[first]);
}

static uint64_t send_section(struct rows *r, const struct crema_section *s, enum outbox_class class)
{
	bool found = s->flags & CREMA_SECTION_FOUND;
	struct drain_unknown unknown =
		rows_unknown(r, s->time_unknown, s->count_unknown, s->fs_mask);
	struct text dataset = view_text(r->view, s->dataset);
	msgpack_packer *pk = outbox_begin_map(r->out, class, CREMA_MSG_SECTION);

	pack_kv_u64(pk, "number", s->number);
	pack_identity(r, pk, s->path, s->span, s->prefix);
	pack_kv_str(pk, "dataset", dataset.ptr, dataset.len);
	pack_kv_true(pk, "beyond", s->flags & CREMA_SECTION_BEYOND);
	pack_kv_text(pk, "thread", s->flags & CREMA_SECTION_POOL ? "pool" : "task");
	pack_kv_text(pk, "source", found ? "roastcoffea" : "crema");
	pack_kv_u64(pk, "rev", s->seq);
	for (unsigned int i = 0; i < CREMA_SECTION_NUMBERS; i++)
		pack_kv_maybe(pk, row_section[i].name, s->count || row_section[i].merge == ROW_SUM,
			      s->counted[i]);
	pack_walls(pk, s);
	if (!found)
		rows_pack_counters(pk, "counters", &s->own, s->unsure ? NULL : s->pool_time,
				   &unknown);
	return outbox_end_map(r->out, class);
}

static uint64_t send_gauge(struct rows *r, const struct crema_gauge *g, enum outbox_class class)
{
	msgpack_packer *pk = outbox_begin_map(r->out, class, CREMA_MSG_GAUGE);

	pack_kv_u64(pk, "number", g->number);
	pack_identity(r, pk, g->path, g->span, g->prefix);
	pack_kv_text(pk, "kind",
		     g->flags & CREMA_SECTION_MEMORY  ? "memory"
		     : g->flags & CREMA_SECTION_BYTES ? "bytes"
						      : "value");
	pack_kv_text(pk, "source", g->flags & CREMA_SECTION_FOUND ? "roastcoffea" : "crema");
	pack_kv_u64(pk, "rev", g->seq);
	pack_kv_u64(pk, "broken", g->broken);
	pack_text(pk, "stats");
	pack_array(pk, CREMA_GAUGE_STATS);
	for (unsigned int i = 0; i < CREMA_GAUGE_STATS; i++) {
		const struct crema_stat *s = &g->stat[i];

#define PACK_uint pack_u64
#define PACK_real pack_f64
		pack_array(pk, CREMA_GAUGE_NUMBERS);
#define GAUGE_NUMBER(name, type, ...) PACK_##type(pk, s->name);
#include "rows.def"
	}
	return outbox_end_map(r->out, class);
}

static void poll_section(struct rows *r, uint32_t i, bool last)
{
	struct crema_section *at = &r->view->shm->section[i], s;
	enum outbox_class class = last ? OUTBOX_RECORD : OUTBOX_LIGHT;

	if (__atomic_load_n(&at->state, __ATOMIC_ACQUIRE) != 2 ||
	    !rows_due(r, &r->section_sent[i], &at->seq, &at->safe_seq, &class))
		return;
	rows_copy(&s, at, sizeof(s), &at->seq);
	r->section_sent[i].ticket = send_section(r, &s, class);
}

static void poll_gauge(struct rows *r, uint32_t i, bool last)
{
	struct crema_gauge *at = &r->view->shm->gauge[i], g;
	enum outbox_class class = last ? OUTBOX_RECORD : OUTBOX_LIGHT;

	if (__atomic_load_n(&at->state, __ATOMIC_ACQUIRE) != 2 ||
	    !rows_due(r, &r->gauge_sent[i], &at->seq, &at->safe_seq, &class))
		return;
	rows_copy(&g, at, sizeof(g), &at->seq);
	r->gauge_sent[i].ticket = send_gauge(r, &g, class);
}

void rows_sections(struct rows *r, bool last)
{
	for (uint32_t i = 0; i < CREMA_SHM_SECTIONS; i++)
		poll_section(r, i, last);
	for (uint32_t i = 0; i < CREMA_SHM_GAUGES; i++)
		poll_gauge(r, i, last);
}
