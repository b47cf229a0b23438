/* SPDX-License-Identifier: BSD-3-Clause */
/* totals.c - TOTALS messages: the exact sums of the worker (rows.h). */
#include <string.h>

#include "agent/rows.h"
#include "common/rows.h"
#include "common/task.h"
#include "unseen_io.h"

static void add_block(struct rows_sums *s, const struct crema_thread *t)
{
	struct crema_counters *to = t->owner ? &s->tasks : &s->unattributed;
	uint64_t *times = t->owner && t->is_pool ? s->pool : to->time;

	for (int k = 0; k < CREMA_TIMES; k++)
		times[k] += t->seg.time[k];
	for (int k = 0; k < CREMA_COUNTS; k++)
		to->count[k] += t->seg.count[k];
}

void rows_sum(const struct view *v, bool ended, struct rows_sums *out)
{
	const struct crema_totals *t = &v->shm->totals;
	uint64_t claimed, *from = &out->unattributed.count[CREMA_C_network_read_bytes];
	struct crema_thread th;

	/* Sums first, then blocks: what is folded in between is missed, never counted twice. */
	memcpy(&out->tasks, &t->tasks, sizeof(out->tasks));
	memcpy(&out->unattributed, &t->unattributed, sizeof(out->unattributed));
	memcpy(out->pool, t->tasks_pool_time, sizeof(out->pool));
	claimed = __atomic_load_n(&t->claimed_network_read_bytes, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < CREMA_SHM_THREADS; i++)
		if (v->shm->thread[i].state == 1 && view_thread(v, i, ended, &th))
			add_block(out, &th);
	/* They had been received before they were claimed; otherwise a thread had found no
	 * block. */
	out->unattributed_unknown = *from < claimed ? CREMA_COUNT_BIT(network_read_bytes) : 0;
	*from -= *from < claimed ? *from : claimed;
	if (t->threads_refused)
		out->unattributed_unknown = UINT64_MAX;
}

/*
 * CPU and blocks of segments that were under way when the snapshot was taken: they are in the
 * snapshot's "seen", but reach the tasks' sums only at their end.
 */
static void add_open_segments(const struct view *v, bool ended, struct rows_sums *s)
{
	struct crema_thread th;

	for (uint32_t i = 0; i < CREMA_SHM_THREADS; i++) {
		uint64_t *times;

		if (v->shm->thread[i].state != 1 || !v->shm->thread[i].owner ||
		    !view_thread(v, i, ended, &th) || !th.owner)
			continue;
		times = th.is_pool ? s->pool : s->tasks.time;
		if (th.now_cpu_ns > th.base_cpu_ns)
			times[CREMA_T_cpu] += th.now_cpu_ns - th.base_cpu_ns;
		if (th.now_inblock > th.base_inblock)
			s->tasks.count[CREMA_C_storage_read_bytes] +=
				(th.now_inblock - th.base_inblock) * 512;
		if (th.now_oublock > th.base_oublock)
			s->tasks.count[CREMA_C_storage_write_bytes] +=
				(th.now_oublock - th.base_oublock) * 512;
	}
}

void rows_pack_counters(msgpack_packer *pk, const char *key, const struct crema_counters *c,
			const uint64_t *pool, const struct drain_unknown *unknown)
{
	pack_text(pk, key);
	pack_map(pk, (pool ? 2 : 1) * CREMA_TIMES + CREMA_COUNTS);
	for (unsigned int i = 0; i < CREMA_TIMES; i++) {
		bool known = !(unknown->time >> i & 1u);

		pack_kv_maybe(pk, task_name(TASK_FIELDS + i), known, c->time[i]);
		if (pool)
			pack_kv_maybe(pk, task_name(TASK_FIELDS + CREMA_TIMES + i), known, pool[i]);
	}
	for (unsigned int i = 0; i < CREMA_COUNTS; i++)
		pack_kv_maybe(pk, task_name(TASK_FIELDS + 2 * CREMA_TIMES + i),
			      !(unknown->count >> i & 1u), c->count[i]);
}

/* For threads without a task: their clocks are not read, seen - tasks gives the time. */
static void pack_unattributed(msgpack_packer *pk, const struct crema_counters *c,
			      struct drain_unknown unknown)
{
	unknown.time |= 1u << CREMA_T_cpu | 1u << CREMA_T_runqueue;
	unknown.count |=
		CREMA_COUNT_BIT(storage_read_bytes) | CREMA_COUNT_BIT(storage_write_bytes) |
		CREMA_COUNT_BIT(voluntary_switches) | CREMA_COUNT_BIT(involuntary_switches);
	rows_pack_counters(pk, "unattributed", c, NULL, &unknown);
}

static void pack_amounts(msgpack_packer *pk, const char *key, bool known, bool io, uint64_t cpu_ns,
			 uint64_t inblock, uint64_t oublock)
{
	size_t map;

	pack_text(pk, key);
	map = pack_map_begin(pk);
	pack_kv_maybe(pk, "cpu_ns", known, cpu_ns);
	pack_kv_maybe(pk, "storage_read_bytes", known && io, inblock * 512);
	pack_kv_maybe(pk, "storage_write_bytes", known && io, oublock * 512);
	pack_map_end(pk, map);
}

static void pack_notes(msgpack_packer *pk, const struct view *v, const char *more)
{
	static const struct {
		uint32_t way;
		const char *text;
	} unseen[] = {
		{CREMA_UNSEEN_RING, "io_uring is in use: what tasks read, write, send and receive "
				    "is unknown from then on"},
		{CREMA_UNSEEN_GPU, "GPUDirect Storage is in use: what tasks read and write is "
				   "unknown from then on"},
		{CREMA_UNSEEN_AIO, "POSIX aio is in use (XRootD's client does so for local files): "
				   "what tasks that use it read and write is unknown"},
	};
	struct text note[CREMA_SHM_NOTES + 4];
	size_t n = 0;

	for (unsigned int i = 0; i < CREMA_SHM_NOTES; i++) {
		note[n] = view_text(v, v->shm->note[i]);
		n += note[n].ptr != NULL;
	}
	for (size_t i = 0; i < sizeof(unseen) / sizeof(*unseen); i++)
		if (__atomic_load_n(&v->shm->unseen_io, __ATOMIC_RELAXED) & unseen[i].way)
			note[n++] = (struct text){unseen[i].text, (uint32_t)strlen(unseen[i].text)};
	if (more && *more)
		note[n++] = (struct text){more, strlen(more)};
	pack_text(pk, "notes");
	pack_array(pk, n);
	for (size_t i = 0; i < n; i++)
		pack_str(pk, note[i].ptr, note[i].len);
}

/* Long waits of tasks, by their class. */
static void pack_blocked(msgpack_packer *pk, const struct crema_blocked *b)
{
	const uint64_t *sums[] = {b->calls, b->ns};
	static const char *const names[] = {"calls", "ns"};
	size_t map;

	pack_text(pk, "blocked");
	map = pack_map_begin(pk);
	pack_kv_maybe(pk, "threshold_ns", b->threshold_ns != 0, b->threshold_ns);
	pack_kv_u64(pk, "recorded", b->recorded);
	for (int k = 0; k < 2; k++) {
		pack_text(pk, names[k]);
		pack_map(pk, CREMA_TIMES);
		for (unsigned int i = 0; i < CREMA_TIMES; i++)
			pack_kv_u64(pk, task_name(TASK_FIELDS + i), sums[k][i]);
	}
	pack_map_end(pk, map);
}

static void pack_unmeasured(msgpack_packer *pk, const struct crema_unmeasured *u)
{
	size_t map;

	pack_text(pk, "unmeasured");
	map = pack_map_begin(pk);
	pack_kv_u64(pk, "outside", u->outside);
	pack_kv_u64(pk, "refused", u->refused);
	pack_kv_u64(pk, "values", u->values);
	pack_kv_u64(pk, "columns", u->columns);
	pack_map_end(pk, map);
}

static void pack_numbers(msgpack_packer *pk, const struct crema_totals *t, uint64_t dropped)
{
	for (unsigned int i = 0; i < CREMA_TOTALS_NUMBERS; i++)
		pack_kv_u64(pk, row_totals[i].name,
			    t->number[i] + (i == CREMA_TOTALS_N_records_refused ? dropped : 0));
}

void rows_totals(struct rows *r, const struct drain_unknown *unknown, bool last, uint64_t boot_ns)
{
	enum outbox_class class = last ? OUTBOX_RECORD : OUTBOX_LIGHT;
	const struct crema_totals *t = &r->view->shm->totals;
	struct drain_unknown all = *unknown, rest;
	struct crema_snapshot snap;
	bool known = view_snapshot(r->view, &snap);
	msgpack_packer *pk = outbox_begin_map(r->out, class, CREMA_MSG_TOTALS);
	struct rows_sums sums;

	rows_sum(r->view, last, &sums);
	all.count |= t->count_unknown;
	if (t->tasks_unblocked)
		all = (struct drain_unknown){UINT32_MAX, UINT64_MAX};
	rest = all;
	rest.count =
		drain_unknown_total(unknown->count) | t->count_unknown | sums.unattributed_unknown;
	if (t->threads_refused)
		rest.time = UINT32_MAX;
	if (known)
		add_open_segments(r->view, last, &sums);
	pack_kv_u64(pk, "boot_ns", boot_ns);
	pack_kv_maybe(pk, "snapshot_boot_ns", known, snap.boot_ns);
	pack_numbers(pk, t, r->out->dropped);
	rows_pack_counters(pk, "tasks", &sums.tasks, sums.pool, &all);
	pack_unattributed(pk, &sums.unattributed, rest);
	pack_amounts(pk, "process", known, true, snap.process_cpu_ns, snap.process_inblock,
		     snap.process_oublock);
	pack_amounts(pk, "seen", known, snap.flags & 1u, snap.seen_cpu_ns, snap.seen_inblock,
		     snap.seen_oublock);
	pack_amounts(pk, "children", known, true, snap.children_cpu_ns, snap.children_inblock,
		     snap.children_oublock);
	pack_blocked(pk, &r->view->shm->blocked);
	pack_unmeasured(pk, &r->view->shm->unmeasured);
	pack_kv_true(pk, "io_uring",
		     __atomic_load_n(&r->view->shm->unseen_io, __ATOMIC_RELAXED) ||
			     t->tasks_unblocked);
	pack_notes(pk, r->view, r->note);
	outbox_end_map(r->out, class);
}
