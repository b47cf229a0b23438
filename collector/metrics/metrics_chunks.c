/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics_chunks.c - what chunks took and how it varies; columns; datasets. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collector/metrics/groups.h"

#define SPREAD(metric, spread, part)                                                               \
	struct value metric_##metric(const struct facts *f)                                        \
	{                                                                                          \
		return spread_##part(&f->spread);                                                  \
	}

SPREAD(chunk_time_min_seconds, chunk_time, min)
SPREAD(chunk_time_max_seconds, chunk_time, max)
SPREAD(chunk_time_mean_seconds, chunk_time, mean)
SPREAD(chunk_time_std_seconds, chunk_time, std)
SPREAD(chunk_wall_min_seconds, chunk_wall, min)
SPREAD(chunk_wall_max_seconds, chunk_wall, max)
SPREAD(chunk_wall_mean_seconds, chunk_wall, mean)
SPREAD(chunk_wall_std_seconds, chunk_wall, std)
SPREAD(time_per_event_std_seconds, time_per_event, std)
SPREAD(memory_per_event_bytes, memory_per_event, mean)
SPREAD(memory_per_event_std_bytes, memory_per_event, std)
SPREAD(chunk_duration_std, chunk_time, sample_std)
SPREAD(chunk_events_mean, chunk_events, mean)
SPREAD(chunk_events_min, chunk_events, min)
SPREAD(chunk_events_max, chunk_events, max)

/* The same in 1048576 bytes, which roastcoffea calls MB. */
#define SPREAD_MIB(metric, spread, part)                                                           \
	struct value metric_##metric(const struct facts *f)                                        \
	{                                                                                          \
		return value_ratio(spread_##part(&f->spread), value_uint(1048576), 1);             \
	}

SPREAD_MIB(chunk_mem_delta_mean_mb, chunk_memory, mean)
SPREAD_MIB(chunk_mem_delta_min_mb, chunk_memory, min)
SPREAD_MIB(chunk_mem_delta_max_mb, chunk_memory, max)
SPREAD_MIB(chunk_mem_delta_std_mb, chunk_memory, sample_std)

struct value metric_time_per_event_seconds(const struct facts *f)
{
	return value_ratio(metric_total_cpu_time(f), metric_total_events(f), 1);
}

struct value metric_cpu_time_per_event_seconds(const struct facts *f)
{
	return value_ratio(metric_total_cpu_time_true(f), metric_total_events(f), 1);
}

struct value metric_measurement_points(const struct facts *f)
{
	(void)f;
	return value_text(
		"processing_time_seconds: around process(), after the events are made and "
		"before the result is serialized; all other numbers of a chunk: the whole "
		"task, from its start to its result, opening and reading included");
}

/* All columns of counted chunks, each once, sorted; -1: unknown for a chunk, -ENOMEM. */
static int by_text(const void *a, const void *b)
{
	const struct text *x = a, *y = b;
	size_t n = x->len < y->len ? x->len : y->len;
	int c = memcmp(x->ptr, y->ptr, n);

	return c ? c : x->len < y->len ? -1 : x->len > y->len;
}

struct column_list {
	struct text *v;
	size_t n, cap;
};

static int add_lines(struct column_list *list, const char *lines)
{
	struct text *t;
	size_t n;

	while (*lines) {
		n = strcspn(lines, "\n");
		if (n) {
			t = ARRAY_NEW(list);
			if (!t)
				return -ENOMEM;
			*t = (struct text){lines, n};
		}
		lines += n + (lines[n] == '\n');
	}
	return 0;
}

static bool same_pointer(const void *item, const void *key)
{
	return item == key;
}

/* 1: known, 0: unknown for a chunk, -ENOMEM. Texts of columns are interned: few differ. */
static int collect_columns(const struct facts *f, struct column_list *list)
{
	const struct run *r = f->run;
	struct table seen = {0};
	const struct attempt *a;
	void *columns;
	size_t i, kept = 0;
	int rc = f->chunks.attempts > 0;

	for (i = 0; i < r->attempts.n && rc > 0; i++) {
		a = r->attempts.v[i];
		if (!a->counted || !attempt_is_chunk(a))
			continue;
		if (!a->columns) {
			rc = 0;
			break;
		}
		memcpy(&columns, &a->columns, sizeof(columns));
		if (table_find(&seen, hash_pair((uintptr_t)columns, 0), same_pointer, columns))
			continue;
		if (table_add(&seen, hash_pair((uintptr_t)columns, 0), columns) ||
		    add_lines(list, a->columns))
			rc = -ENOMEM;
	}
	table_release(&seen);
	if (rc > 0 && list->n) {
		qsort(list->v, list->n, sizeof(*list->v), by_text);
		for (i = 1; i < list->n; i++) {
			if (by_text(&list->v[kept], &list->v[i]))
				list->v[++kept] = list->v[i];
		}
		list->n = kept + 1;
	}
	return rc;
}

void metric_columns(const struct facts *f, const char *name, struct json *j)
{
	struct column_list list = {0};
	size_t i;
	int rc = collect_columns(f, &list);

	if (rc < 0)
		j->sink->error = rc;
	if (rc <= 0) {
		emit_value(j, name, value_null());
	} else {
		emit_array(j, name);
		for (i = 0; i < list.n; i++)
			emit_text(j, NULL, list.v[i].ptr, list.v[i].len);
		emit_end(j);
	}
	free(list.v);
}

struct value metric_num_columns(const struct facts *f)
{
	struct column_list list = {0};
	int rc = collect_columns(f, &list);
	struct value v = rc > 0 ? value_uint(list.n) : value_null();

	free(list.v);
	return v;
}

void metric_per_dataset(const struct facts *f, const char *name, struct json *j)
{
	const struct groups *list = f->datasets;
	const struct tally *t;
	size_t i;

	emit_object(j, name);
	for (i = 0; i < list->n; i++) {
		t = &list->v[i].t;
		emit_object(j, list->v[i].key ? list->v[i].key : "unknown");
		emit_value(j, "chunks", value_uint(t->attempts));
		emit_value(j, "events", sum_value(&t->events));
		emit_value(j, "coffea_bytesread", sum_value(&t->bytesread));
		emit_value(j, "read_bytes", sum_value(&t->count[CREMA_C_read_bytes]));
		emit_value(j, "storage_read_bytes", sum_value(&t->storage_read));
		emit_value(j, "decompress_in_bytes",
			   sum_value(&t->count[CREMA_C_decompress_in_bytes]));
		emit_value(j, "decompress_out_bytes",
			   sum_value(&t->count[CREMA_C_decompress_out_bytes]));
		emit_value(j, "wall_seconds", value_seconds(sum_value(&t->wall_ns)));
		emit_value(j, "max_chunk_wall_seconds",
			   t->wall_ns.unknown ? value_null() : value_real(list->v[i].max_wall));
		emit_value(j, "cpu_seconds", tally_cpu(t));
		emit_value(j, "coffea_processtime_seconds",
			   t->processtime_unknown ? value_null() : value_real(t->processtime));
		emit_value(j, "cpu_seconds_per_event",
			   value_ratio(tally_cpu(t), sum_value(&t->events), 1));
		emit_end(j);
	}
	emit_end(j);
}

/* The dataset with the largest value; unknown if any value is. */
static struct value largest(const struct facts *f, struct value (*value)(const struct tally *))
{
	const struct groups *list = f->datasets;
	const char *name = NULL;
	double best = -INFINITY, d;
	bool known = true;
	size_t i;

	for (i = 0; i < list->n && known; i++) {
		d = value_number(value(&list->v[i].t), &known);
		if (known && d > best) {
			best = d;
			name = list->v[i].key;
		}
	}
	return value_text(known ? name : NULL);
}

static struct value events_of(const struct tally *t)
{
	return sum_value(&t->events);
}

static struct value cpu_per_event(const struct tally *t)
{
	return value_ratio(tally_cpu(t), sum_value(&t->events), 1);
}

struct value metric_slowest_dataset(const struct facts *f)
{
	return largest(f, cpu_per_event);
}

struct value metric_largest_dataset(const struct facts *f)
{
	return largest(f, events_of);
}
