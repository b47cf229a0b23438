/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics_phases.c - preprocessing, processing, merging, and time outside of processing. */
#include "collector/metrics/metrics.h"

static struct value elapsed(const struct window *w)
{
	return w->n && !w->unknown ? value_seconds(value_uint(w->last_ns - w->first_ns))
				   : value_null();
}

struct value metric_preprocessing_elapsed_seconds(const struct facts *f)
{
	return elapsed(&f->preprocessing_window);
}

struct value metric_processing_elapsed_seconds(const struct facts *f)
{
	return elapsed(&f->work_window);
}

struct value metric_preprocessing_task_seconds(const struct facts *f)
{
	return value_seconds(sum_value(&f->preprocessing.wall_ns));
}

struct value metric_processing_task_seconds(const struct facts *f)
{
	return value_seconds(sum_value(&f->work.wall_ns));
}

struct value metric_merging_task_seconds(const struct facts *f)
{
	return value_seconds(sum_value(&f->merges.wall_ns));
}

struct value metric_idle_thread_seconds(const struct facts *f)
{
	bool known_wall, known_cores;
	double wall = value_number(metric_wall_time(f), &known_wall);
	double cores = value_number(metric_total_cores(f), &known_cores);

	if (!known_wall || !known_cores || f->all.unclassified_unknown)
		return value_null();
	return value_real(wall * cores - f->all.wall);
}

static void emit_class(struct json *j, const char *name, const struct tally *t)
{
	emit_object(j, name);
	emit_value(j, "attempts", value_uint(t->attempts));
	emit_value(j, "wall_seconds", value_seconds(sum_value(&t->wall_ns)));
	emit_value(j, "cpu_seconds", tally_cpu(t));
	emit_end(j);
}

void metric_overhead_classes(const struct facts *f, const char *name, struct json *j)
{
	emit_object(j, name);
	emit_class(j, "preprocessing", &f->preprocessing);
	emit_class(j, "merging", &f->merges);
	emit_class(j, "other_tasks", &f->others);
	emit_class(j, "repeated_work", &f->wasted);
	emit_object(j, "transfer");
	emit_value(j, "received_bytes", sum_value(&f->tasks.count[CREMA_C_comm_read_bytes]));
	emit_value(j, "sent_bytes", sum_value(&f->tasks.count[CREMA_C_comm_write_bytes]));
	emit_end(j);
	emit_object(j, "threads_without_task");
	emit_value(j, "wall_seconds", metric_idle_thread_seconds(f));
	emit_end(j);
	emit_end(j);
}
