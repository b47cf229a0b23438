/* SPDX-License-Identifier: BSD-3-Clause */
/* budget.c - divides the threads' time into CPU, waits and idle. */
#include "collector/metrics/budget.h"

#include <math.h>
#include <string.h>

bool budget_build(struct budget *b, const struct facts *f)
{
	const struct tally *t = &f->all;
	bool wall_known, threads_known, known;
	double rest = t->wall - t->unmeasured_s;
	unsigned int i;

	memset(b, 0, sizeof(*b));
	b->wall_seconds = value_number(metric_wall_time(f), &wall_known);
	b->threads = value_number(metric_total_cores(f), &threads_known);
	if (!wall_known || !threads_known || t->unclassified_unknown)
		return false;
	b->thread_seconds = fmax(b->wall_seconds * b->threads, t->wall);
	b->idle = b->thread_seconds - t->wall;
	for (i = 0; i < CREMA_TIMES; i++) {
		b->class_s[i] = value_number(tally_class_part(t, i), &known);
		rest -= b->class_s[i];
		b->class_s[i] = known ? b->class_s[i] : (double)NAN;
	}
	b->unclassified = rest;
	b->unmeasured = t->unmeasured_s;
	return true;
}

void budget_emit(const struct facts *f, const char *name, struct json *j)
{
	struct budget b;
	unsigned int i;

	if (!budget_build(&b, f)) {
		emit_value(j, name, value_null());
		return;
	}
	emit_object(j, name);
	emit_value(j, "wall_seconds", value_real(b.wall_seconds));
	emit_value(j, "threads", value_real(b.threads));
	emit_value(j, "thread_seconds", value_real(b.thread_seconds));
	for (i = 0; i < CREMA_TIMES; i++)
		emit_value(j, class_name(i), value_real(b.class_s[i]));
	emit_value(j, "unclassified", value_real(b.unclassified));
	emit_value(j, "unmeasured", value_real(b.unmeasured));
	emit_value(j, "idle", value_real(b.idle));
	emit_end(j);
}

void metric_budget(const struct facts *f, const char *name, struct json *j)
{
	budget_emit(f, name, j);
}
