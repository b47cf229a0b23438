/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perfetto.c - the run as a trace for ui.perfetto.dev and chrome://tracing: Trace Event format,
 * JSON.
 *
 * A worker is a process, its thread a track, an attempt at a task a slice named by its prefix, with
 * its key and numbers as arguments. Processes are numbered from 1, as kernel process ids of two
 * hosts may be equal. Slices of a track must not overlap: asynchronous tasks, and others that
 * overlap on one thread, are separate events outside the tracks. Times are exact to the ns, in
 * microseconds since the first event.
 *
 * A wait is an argument of the task, in seconds. Its position within the task is unknown, so it has
 * no slice. The counters show the worker's waits by the second.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collector/export/atomic_file.h"
#include "collector/export/export.h"
#include "collector/print/render.h"
#include "collector/report/columns.h"
#include "common/log.h"
#include "common/rows.h"
#include "version.h"

struct trace {
	const struct report *report;
	struct json *json;
	uint64_t origin_ns;	     /* UTC of the trace's time 0 */
	uint64_t without_clock, ids; /* attempts without a clock; ids used */
};

static void put_time(struct json *j, const char *name, uint64_t ns)
{
	char text[40];

	snprintf(text, sizeof(text), "%" PRIu64 ".%03" PRIu64, ns / 1000, ns % 1000);
	emit_raw(j, name, text);
}

/* Opens an event: its name, phase, process (from 1) and time. */
static void begin_event(struct trace *t, const char *name, const char *phase, size_t pid,
			uint64_t utc_ns)
{
	emit_object(t->json, NULL);
	emit_value(t->json, "name", value_text(name));
	emit_value(t->json, "ph", value_text(phase));
	emit_value(t->json, "pid", value_uint(pid));
	if (*phase != 'M')
		put_time(t->json, "ts", utc_ns > t->origin_ns ? utc_ns - t->origin_ns : 0);
}

static void put_counter(struct trace *t, size_t pid, const char *name, double time,
			const char *member, double v)
{
	if (isnan(time) || isnan(v) || time < 0)
		return;
	begin_event(t, name, "C", pid, (uint64_t)(time * 1e9));
	emit_object(t->json, "args");
	emit_value(t->json, member, value_real(v));
	emit_end(t->json);
	emit_end(t->json);
}

static void put_samples(struct trace *t, const struct worker *w, size_t pid)
{
	const struct run *run = t->report->run;
	const struct sample *s;
	const struct probe *p;
	size_t i;

	for (i = 0; i < w->samples.n; i++) {
		s = &w->samples.v[i];
		if (!tracking_has(run, s->time))
			continue;
		put_counter(t, pid, "memory, bytes", s->time, "resident", s->rss_bytes);
		put_counter(t, pid, "CPU, %", s->time, "process", s->cpu_percent);
	}
	for (i = 0; i < w->probes.n; i++) {
		p = &w->probes.v[i];
		if (!tracking_has(run, p->time))
			continue;
		put_counter(t, pid, "tasks executing", p->time, "executing", p->executing);
		put_counter(t, pid, "tasks ready", p->time, "ready", p->ready);
	}
}

/* When a point's series was read: some come with the worker's own snapshot. */
static uint64_t point_ns(const struct worker *w, const struct history_point *p,
			 enum history_series s)
{
	return worker_utc_ns(w,
			     history_is_sampled(s) && p->snapshot_ns ? p->snapshot_ns : p->boot_ns);
}

/* The rate between two points, per second: false if it is unknown at one of them. */
static bool rate(const struct worker *w, const struct history_point *a,
		 const struct history_point *b, enum history_series s, double *out)
{
	uint64_t from = point_ns(w, a, s), to = point_ns(w, b, s);

	if (!((a->known >> s) & 1) || !((b->known >> s) & 1) || !from || to <= from ||
	    b->v[s] < a->v[s])
		return false;
	*out = (double)(b->v[s] - a->v[s]) / ((double)(to - from) / 1e9);
	return true;
}

static bool overlaps(const struct run *run, const struct worker *w, const struct history_point *a,
		     const struct history_point *b)
{
	return worker_utc(w, b->boot_ns) > run->start && worker_utc(w, a->boot_ns) < run->stop;
}

/* Bytes of a layer as bits per second. Layers contain each other, so each has a separate
 * counter. */
static void put_layer(struct trace *t, const struct worker *w, size_t pid, unsigned int layer)
{
	const struct history *h = &w->history;
	enum history_series s = (enum history_series)layer; /* the layers are the first series */
	char name[80];
	bool shown = false;
	uint64_t end = 0;
	double v;
	size_t i;

	snprintf(name, sizeof(name), "%s, Gbit/s", row_layers[layer].label);
	for (i = 1; i < h->n; i++) {
		if (!overlaps(t->report->run, w, &h->v[i - 1], &h->v[i]) ||
		    !rate(w, &h->v[i - 1], &h->v[i], s, &v))
			continue;
		put_counter(t, pid, name, (double)point_ns(w, &h->v[i - 1], s) / 1e9, "rate",
			    v * 8 / 1e9);
		end = point_ns(w, &h->v[i], s);
		shown = true;
	}
	/* after the run there are no values, but a counter keeps its last one */
	if (shown)
		put_counter(t, pid, name, (double)end / 1e9, "rate", 0);
}

/* Opens an event of the classes' counter with its first part; the parts follow. */
static void put_part(struct trace *t, size_t pid, uint64_t utc_ns, bool *any, size_t s, double v)
{
	if (!*any) {
		begin_event(t, "tasks' time, s/s", "C", pid, utc_ns);
		emit_object(t->json, "args");
	}
	*any = true;
	emit_value(t->json, history_name((enum history_series)s), value_real(v));
}

static void end_parts(struct trace *t, bool any)
{
	if (any) {
		emit_end(t->json);
		emit_end(t->json);
	}
}

/* Classes add up to the tasks' wall time: one counter with a part for each. */
static void put_classes(struct trace *t, const struct worker *w, size_t pid)
{
	const struct history *h = &w->history;
	bool shown[HISTORY_SERIES] = {false}, any;
	uint64_t end_ns = 0;
	size_t i, s;
	double v;

	for (i = 1; i < h->n; i++) {
		if (!overlaps(t->report->run, w, &h->v[i - 1], &h->v[i]))
			continue;
		for (s = 0, any = false; s < HISTORY_SERIES; s++) {
			if (!history_is_class((enum history_series)s) ||
			    s == HISTORY_pool_cpu_seconds ||
			    !rate(w, &h->v[i - 1], &h->v[i], (enum history_series)s, &v))
				continue;
			put_part(t, pid, worker_utc_ns(w, h->v[i - 1].boot_ns), &any, s, v / 1e9);
			shown[s] = true;
		}
		end_parts(t, any);
		if (any)
			end_ns = worker_utc_ns(w, h->v[i].boot_ns);
	}
	/* as for the layers */
	for (s = 0, any = false; s < HISTORY_SERIES; s++) {
		if (shown[s])
			put_part(t, pid, end_ns, &any, s, 0);
	}
	end_parts(t, any);
}

/* Counters of a worker: memory, tasks, bits per second by layer, seconds of tasks by class. */
static void put_counters(struct trace *t, const struct worker *w, size_t pid)
{
	unsigned int k;

	put_samples(t, w, pid);
	for (k = 0; k < CREMA_LAYERS; k++) {
		if (row_layers[k].label[0])
			put_layer(t, w, pid, k);
	}
	put_classes(t, w, pid);
}

/* A thread of a worker; the last event on its track ends at end_ns. */
struct track {
	const struct worker *worker;
	uint64_t thread, end_ns;
	size_t pid;
};

struct tracks {
	struct table table;
	struct arena arena;
};

/* An unknown thread gets a number that the kernel never assigns: 0 is the main thread in
 * Perfetto. */
#define UNKNOWN_THREAD (UINT64_C(1) << 22)

static uint64_t shown_thread(uint64_t thread)
{
	return thread ? thread : UNKNOWN_THREAD;
}

static bool same_track(const void *item, const void *key)
{
	const struct track *a = item, *b = key;

	return a->worker == b->worker && a->thread == b->thread;
}

/* Creates the track on first use, and names it in the trace. */
static struct track *track_of(struct tracks *all, struct trace *t, const struct attempt *a)
{
	struct value thread = attempt_u64(a, TASK_F_thread);
	struct track key = {.worker = a->worker}, *found;
	char name[48];
	uint64_t hash;
	size_t i;

	if (thread.type == VALUE_UINT)
		key.thread = thread.v.u;
	hash = hash_pair(hash_bytes(1, a->worker->id, sizeof(a->worker->id)), key.thread);
	found = table_find(&all->table, hash, same_track, &key);
	if (found)
		return found;
	for (i = 0; i < t->report->run->workers.n; i++) {
		if (t->report->run->workers.v[i] == a->worker)
			break;
	}
	key.pid = i + 1;
	found = arena_get(&all->arena, sizeof(*found));
	if (!found || table_add(&all->table, hash, found))
		return NULL;
	*found = key;
	begin_event(t, "thread_name", "M", key.pid, 0);
	emit_value(t->json, "tid", value_uint(shown_thread(key.thread)));
	if (key.thread)
		snprintf(name, sizeof(name), "thread %" PRIu64, key.thread);
	else
		snprintf(name, sizeof(name), "thread unknown");
	emit_object(t->json, "args");
	emit_value(t->json, "name", value_text(name));
	emit_end(t->json);
	emit_end(t->json);
	return found;
}

/* The columns of tasks and chunks that are useful in a trace. */
static const char *const arguments[] = {
	"key",
	"attempt",
	"counted",
	"waste_reason",
	"status",
	"function",
	"wall_seconds",
#define PLAIN(name) #name,
#define CPU(name) PLAIN(name) PLAIN(pool_##name)
#define ESTIMATED(name) #name, "storage_wait_estimated",
#define TIME(id, name, column, ...) column(name)
#include "counters.def"
	"unclassified_seconds",
	"read_calls",
	"read_bytes",
	"mapped_bytes",
	"storage_read_bytes",
	"network_read_bytes",
	"decompress_out_bytes",
	"decompress_cpu_seconds",
	"rss_peak_bytes",
	"dataset",
	"filename",
	"treename",
	"entrystart",
	"entrystop",
	"events",
	"coffea_bytesread",
};

/* Viewers round larger whole numbers (doubles), or take them for negative ones: as text they
 * are exact. */
#define EXACT_MAX (UINT64_C(1) << 53)

static void put_argument(struct json *j, const char *name, struct value v)
{
	char text[24];

	if (v.type == VALUE_UINT && v.v.u > EXACT_MAX) {
		snprintf(text, sizeof(text), "%" PRIu64, v.v.u);
		v = value_text(text);
	}
	emit_value(j, name, v);
}

static void put_columns(struct json *j, const struct column *c, size_t n, const struct attempt *a,
			const struct classes *classes)
{
	struct value v;
	size_t i, k;

	for (i = 0; i < n; i++) {
		for (k = 0; k < sizeof(arguments) / sizeof(*arguments); k++) {
			if (!strcmp(arguments[k], c[i].name))
				break;
		}
		if (k == sizeof(arguments) / sizeof(*arguments))
			continue;
		v = column_value(&c[i], a, classes);
		/* a missing name carries no information; a missing number does */
		if (v.type != VALUE_NULL)
			put_argument(j, c[i].name, v);
		else if (c[i].type != VALUE_TEXT)
			emit_value(j, c[i].name, value_text("unknown"));
	}
}

static void put_arguments(struct trace *t, const struct attempt *a)
{
	struct classes c;

	attempt_classes(a, &c);
	emit_object(t->json, "args");
	put_columns(t->json, task_columns, task_column_count, a, &c);
	if (attempt_is_chunk(a))
		put_columns(t->json, chunk_columns, chunk_column_count, a, &c);
	emit_end(t->json);
}

/* A viewer can filter by these: the kind, and whether the work counted. */
static void put_category(struct json *j, const struct attempt *a)
{
	char text[64];

	snprintf(text, sizeof(text), "%s%s",
		 a->flags & CREMA_TASK_PREPROCESSING ? "preprocessing"
		 : a->flags & CREMA_TASK_MERGE	     ? "merge"
		 : attempt_is_chunk(a)		     ? "chunk"
						     : "task",
		 a->counted || a->state == ATTEMPT_RUNNING ? "" : ",wasted");
	emit_value(j, "cat", value_text(text));
	if (!a->counted && a->state != ATTEMPT_RUNNING)
		emit_value(j, "cname", value_text("terrible"));
}

static const char *slice_name(const struct attempt *a)
{
	return a->prefix	       ? a->prefix
	       : a->c.shared->function ? a->c.shared->function
	       : a->key		       ? a->key
				       : "task";
}

/* An event outside the tracks: begin and end joined by an id local to the process; an event with a
 * global id belongs to no process. */
static void put_async(struct trace *t, const struct attempt *a, const struct track *k)
{
	char id[24];
	int end;

	snprintf(id, sizeof(id), "%" PRIu64, ++t->ids);
	for (end = 0; end < 2; end++) {
		begin_event(t, slice_name(a), end ? "e" : "b", k->pid,
			    end ? a->end_ns : a->begin_ns);
		put_category(t->json, a);
		emit_object(t->json, "id2");
		emit_value(t->json, "local", value_text(id));
		emit_end(t->json);
		emit_value(t->json, "tid", value_uint(shown_thread(k->thread)));
		if (!end)
			put_arguments(t, a);
		emit_end(t->json);
	}
}

static int put_attempt(struct trace *t, struct tracks *tracks, const struct attempt *a)
{
	struct track *k;

	if (!a->begin_ns || a->end_ns < a->begin_ns) {
		t->without_clock++;
		return 0;
	}
	k = track_of(tracks, t, a);
	if (!k)
		return -ENOMEM;
	if (a->flags & CREMA_TASK_ASYNC || a->begin_ns < k->end_ns) {
		put_async(t, a, k);
		return 0;
	}
	k->end_ns = a->end_ns;
	begin_event(t, slice_name(a), "X", k->pid, a->begin_ns);
	put_time(t->json, "dur", a->end_ns - a->begin_ns);
	emit_value(t->json, "tid", value_uint(shown_thread(k->thread)));
	put_category(t->json, a);
	put_arguments(t, a);
	emit_end(t->json);
	return 0;
}

static void put_process(struct trace *t, const struct worker *w, size_t pid)
{
	char labels[256];

	begin_event(t, "process_name", "M", pid, 0);
	emit_object(t->json, "args");
	emit_value(t->json, "name", value_text(w->name ? w->name : w->label));
	emit_end(t->json);
	emit_end(t->json);
	snprintf(labels, sizeof(labels), "%s, host %s", w->label, w->host ? w->host : "unknown");
	begin_event(t, "process_labels", "M", pid, 0);
	emit_object(t->json, "args");
	emit_value(t->json, "labels", value_text(labels));
	emit_end(t->json);
	emit_end(t->json);
	begin_event(t, "process_sort_index", "M", pid, 0);
	emit_object(t->json, "args");
	emit_value(t->json, "sort_index", value_uint(pid));
	emit_end(t->json);
	emit_end(t->json);
}

/* The time of the first event: a task, or a sample just before it. */
static uint64_t first_ns(const struct run *run)
{
	uint64_t first = 0;
	size_t i;

	for (i = 0; i < run->attempts.n && !first; i++)
		first = run->attempts.v[i]->begin_ns;
	return first > UINT64_C(1000000000) ? first - UINT64_C(1000000000) : 0;
}

static void put_head(struct trace *t)
{
	const struct run *run = t->report->run;
	char text[40];

	emit_value(t->json, "displayTimeUnit", value_text("ms"));
	emit_object(t->json, "otherData");
	emit_value(t->json, "program", value_text("crema " CREMA_VERSION));
	emit_value(t->json, "run", value_text(run->id));
	emit_value(t->json, "origin_utc",
		   t->origin_ns
			   ? value_text(iso_time((double)t->origin_ns / 1e9, text, sizeof(text)))
			   : value_null());
	emit_end(t->json);
}

static int put_all(struct trace *t, struct tracks *tracks)
{
	const struct run *run = t->report->run;
	size_t i;
	int rc = 0;

	emit_object(t->json, NULL);
	put_head(t);
	emit_array(t->json, "traceEvents");
	for (i = 0; i < run->workers.n; i++) {
		put_process(t, run->workers.v[i], i + 1);
		put_counters(t, run->workers.v[i], i + 1);
	}
	for (i = 0; i < run->attempts.n && !rc; i++)
		rc = put_attempt(t, tracks, run->attempts.v[i]);
	emit_end(t->json);
	emit_value(t->json, "attempts_without_clock", value_uint(t->without_clock));
	emit_end(t->json);
	return rc;
}

int export_perfetto(const struct report *r, const char *path, struct buf *why)
{
	struct tracks tracks;
	struct atomic_file d;
	struct json json;
	struct trace t = {.report = r, .json = &json, .origin_ns = first_ns(r->run)};
	int rc = atomic_file_init(&d, path), err;

	memset(&tracks, 0, sizeof(tracks));
	if (!rc) {
		emit_init(&json, &d.sink);
		rc = put_all(&t, &tracks);
	}
	if (!rc)
		rc = atomic_file_close(&d);
	atomic_file_drop(&d);
	table_release(&tracks.table);
	arena_release(&tracks.arena);
	err = rc;
	return err ? report_fail(why, err, "cannot write '%s': %s", path, log_error(err)) : 0;
}
