/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics_workers.c - what each worker did in the run, and how even that is. */
#include "collector/metrics/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Counted attempts of each worker of the run, in the order of run->workers; NULL: no memory. */
static struct tally *tally_workers(const struct facts *f)
{
	const struct run *r = f->run;
	struct tally *t = calloc(r->workers.n + 1, sizeof(*t));
	size_t i, w = 0;

	for (i = 0; t && i < r->attempts.n; i++) {
		if (!r->attempts.v[i]->counted)
			continue;
		/* neighbours are often of the same worker */
		if (w >= r->workers.n || r->workers.v[w] != r->attempts.v[i]->worker) {
			for (w = 0; w < r->workers.n; w++) {
				if (r->workers.v[w] == r->attempts.v[i]->worker)
					break;
			}
		}
		if (w < r->workers.n)
			tally_add(&t[w], r->attempts.v[i]);
	}
	return t;
}

static void emit_worker(const struct facts *f, const struct worker *w, const struct tally *t,
			struct json *j)
{
	emit_value(j, "tasks", value_uint(t->attempts));
	emit_value(j, "events", sum_value(&t->events));
	emit_value(j, "wall_seconds", value_seconds(sum_value(&t->wall_ns)));
	emit_value(j, "cpu_seconds", tally_cpu(t));
	emit_value(j, "gil_wait_seconds", tally_class(t, CREMA_T_gil_wait));
	emit_value(j, "network_wait_seconds", tally_class(t, CREMA_T_network_wait));
	emit_value(j, "storage_wait_seconds", tally_class(t, CREMA_T_storage_wait));
	emit_value(j, "decompress_cpu_seconds",
		   value_seconds(sum_value(&t->count[CREMA_C_decompress_cpu_ns])));
	emit_value(j, "read_bytes", sum_value(&t->count[CREMA_C_read_bytes]));
	emit_value(j, "storage_read_bytes", sum_value(&t->storage_read));
	emit_value(j, "decompress_out_bytes", sum_value(&t->count[CREMA_C_decompress_out_bytes]));
	digests_emit_activities(f, w, "activities", j);
}

void metric_per_worker(const struct facts *f, const char *name, struct json *j)
{
	struct tally *t = tally_workers(f);
	size_t i;

	emit_object(j, name);
	if (!t)
		j->sink->error = -ENOMEM;
	for (i = 0; t && i < f->run->workers.n; i++) {
		emit_object(j, f->run->workers.v[i]->label);
		emit_worker(f, f->run->workers.v[i], &t[i], j);
		emit_end(j);
	}
	emit_end(j);
	free(t);
}

struct value metric_worker_imbalance(const struct facts *f)
{
	struct tally *t = tally_workers(f);
	struct spread s = {0};
	size_t i;

	for (i = 0; t && i < f->run->workers.n; i++)
		spread_add(&s, sum_value(&t[i].wall_ns));
	free(t);
	return value_ratio(spread_max(&s), spread_mean(&s), 1);
}
