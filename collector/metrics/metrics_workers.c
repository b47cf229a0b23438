/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics_workers.c - the work of each worker in the run, and how even it is. */
#include "collector/metrics/groups.h"
#include "common/rows.h"

/* Counted attempts of a worker; there may be none. */
static const struct tally *worker_tally(const struct facts *f, const struct worker *w)
{
	static const struct tally none;
	const struct group *g = groups_find(f->workers, w);

	return g ? &g->t : &none;
}

static void emit_worker(const struct facts *f, const struct worker *w, const struct tally *t,
			struct json *j)
{
	emit_value(j, "tasks", value_uint(t->attempts));
	emit_value(j, "events", sum_value(&t->events));
	emit_value(j, "wall_seconds", value_seconds(sum_value(&t->wall_ns)));
	for (unsigned int i = 0; i < CREMA_TIMES; i++)
		emit_value(j, row_times[i].name,
			   i == CREMA_T_cpu ? tally_cpu(t) : tally_class(t, i));
	emit_value(j, "decompress_cpu_seconds",
		   value_seconds(sum_value(&t->count[CREMA_C_decompress_cpu_ns])));
	emit_value(j, "read_bytes", sum_value(&t->count[CREMA_C_read_bytes]));
	emit_value(j, "storage_read_bytes", sum_value(&t->storage_read));
	emit_value(j, "decompress_out_bytes", sum_value(&t->count[CREMA_C_decompress_out_bytes]));
	digests_emit_activities(f, w, "activities", j);
}

void metric_per_worker(const struct facts *f, const char *name, struct json *j)
{
	const struct worker *w;
	size_t i;

	emit_object(j, name);
	for (i = 0; i < f->run->workers.n; i++) {
		w = f->run->workers.v[i];
		emit_object(j, w->label);
		emit_worker(f, w, worker_tally(f, w), j);
		emit_end(j);
	}
	emit_end(j);
}

struct value metric_worker_imbalance(const struct facts *f)
{
	struct spread s = {0};
	size_t i;

	for (i = 0; i < f->run->workers.n; i++)
		spread_add(&s, sum_value(&worker_tally(f, f->run->workers.v[i])->wall_ns));
	return value_ratio(spread_max(&s), spread_mean(&s), 1);
}
