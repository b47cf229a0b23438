/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live_progress.c - how much of the work is done, if Dask's scheduler reports how much there is.
 *
 * One worker queries the scheduler (shim/python/probe_scheduler.py), and its samples contain the
 * answer. If several schedulers have work there is no total: each ends at another time.
 *
 * The rate is that of one thread, over at least the latter half of the time since the work began,
 * times the current number of threads: a cluster that grows or shrinks ends sooner or later than
 * its past suggests. The threads of a new worker count in the prediction at once, but in the past
 * only from its first task: until then it imports what tasks need. The time begins and ends with
 * ends of tasks.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collector/live/live_parts.h"

#define UNKNOWN ((double)NAN)
#define FRESH_SECONDS 10.0 /* how long another worker waits before it queries */
#define FIRST_ANCHOR_SECONDS 10.0
#define SAME_BEGIN_SECONDS 2.0

static double real_at(const json_t *row, size_t i)
{
	const json_t *v = json_array_get(row, i);

	return json_is_number(v) && json_number_value(v) >= 0 ? json_number_value(v) : UNKNOWN;
}

/* Adds a row [prefix, unfinished, ended, seconds since the first began, since the last ended]. */
static void add(struct live_count *to, const json_t *row)
{
	double left = real_at(row, 1), ended = real_at(row, 2);

	if (isnan(left + ended))
		return;
	to->total += left + ended;
	to->ended += ended;
	to->began = fmax(to->began, real_at(row, 3)); /* fmax and fmin ignore NAN */
	to->last = fmin(to->last, real_at(row, 4));
}

void live_progress_feed(struct live *live, struct live_worker *w, const json_t *told)
{
	const struct live_count none = {0, 0, UNKNOWN, UNKNOWN};
	const json_t *clients = json_object_get(told, "clients"), *row;
	const json_t *age = json_object_get(told, "age");
	struct live_told *t = &w->told;
	size_t i;

	*t = (struct live_told){.tasks = none, .chunks = none};
	if (!json_is_number(clients) || !json_is_number(age))
		return;
	t->known = true;
	t->age = json_number_value(age);
	t->clients = json_number_value(clients);
	if (json_is_string(json_object_get(told, "id")))
		snprintf(t->scheduler, sizeof(t->scheduler), "%s",
			 json_string_value(json_object_get(told, "id")));
	json_array_foreach(json_object_get(told, "prefixes"), i, row)
	{
		const char *name = json_string_value(json_array_get(row, 0));
		struct text text = {name, name ? strlen(name) : 0};

		add(&t->tasks, row);
		if (live_prefix_has_chunks(live, text))
			add(&t->chunks, row);
	}
}

/* Age in seconds: of the answer in its sample, of the sample, and since the worker's last
 * message. */
static double age_of(const struct live_worker *w, int64_t now_ms)
{
	return w->told.age + (double)(w->last_boot_ns - w->probe_boot_ns) / 1e9 +
	       (double)(now_ms - w->heard_ms) / 1e3;
}

static void since(struct live_count *c, double age)
{
	c->began += age;
	c->last += age;
}

/* Chunks as long as some remain, else tasks. Takes the newest answer for each scheduler. */
static bool count(const struct live *live, int64_t now_ms, struct live_count *out)
{
	const struct live_count none = {0, 0, UNKNOWN, UNKNOWN};
	const struct live_told *only = NULL;
	const struct live_worker *w;
	double age, youngest = UNKNOWN;
	bool is_chunks;

	*out = none;
	for (w = live->workers; w; w = w->next) {
		if (!w->told.known || live_state(w, now_ms) != LIVE_CONNECTED)
			continue;
		age = age_of(w, now_ms);
		if (age > FRESH_SECONDS || !(w->told.tasks.total > 0))
			continue;
		if (only && strcmp(only->scheduler, w->told.scheduler) != 0)
			return false;
		if (only && age >= youngest)
			continue;
		only = &w->told;
		youngest = age;
	}
	if (!only)
		return false;
	is_chunks = only->chunks.total > only->chunks.ended;
	*out = is_chunks ? only->chunks : only->tasks;
	since(out, youngest);
	return is_chunks;
}

static bool has_begun(const struct live_worker *w)
{
	return !live_known(&w->row, LIVE_tasks_started) || w->row.value[LIVE_tasks_started];
}

/* Adds up how long the threads of connected workers could work until now. Returns the number of
 * threads; *working: those of workers that have started a task. */
static double add_thread_time(struct live *live, int64_t now_ms, double *working)
{
	double threads = 0, own;

	*working = 0;
	for (const struct live_worker *w = live->workers; w; w = w->next) {
		if (live_state(w, now_ms) != LIVE_CONNECTED)
			continue;
		own = w->threads > 0 ? w->threads : 1; /* unknown: assume one */
		threads += own;
		*working += has_begun(w) ? own : 0;
	}
	if (live->thread_ms)
		live->thread_s += *working * (double)(now_ms - live->thread_ms) / 1e3;
	live->thread_ms = now_ms;
	return threads;
}

/* Anchors double their distance from the beginning: the rate is from the one before the last. */
static void move_anchors(struct live_pace *p, const struct live_count *c, bool chunks, double now,
			 double working, double thread_s)
{
	double began = now - c->began, last = now - c->last;

	if (p->chunks != chunks || !(fabs(began - p->began) < SAME_BEGIN_SECONDS) ||
	    c->ended < p->b.ended) {
		*p = (struct live_pace){.chunks = chunks, .began = began};
		p->a = p->b = (struct live_edge){began, 0, thread_s - working * c->began};
	}
	if (last - p->began >= fmax(FIRST_ANCHOR_SECONDS, 2 * (p->b.time - p->began))) {
		p->a = p->b;
		p->b = (struct live_edge){last, c->ended, thread_s - working * c->last};
	}
}

void live_progress_at(struct live *live, int64_t now_ms, struct live_progress *out)
{
	double working, threads = add_thread_time(live, now_ms, &working), worked, ended, left;
	struct live_count c;

	memset(out, 0, sizeof(*out));
	out->per_second = out->seconds_left = UNKNOWN;
	out->chunks = count(live, now_ms, &c);
	out->known = c.total > 0;
	out->total = c.total;
	out->done = c.ended;
	if (!out->known)
		return;
	move_anchors(&live->pace, &c, out->chunks, (double)now_ms / 1e3, working, live->thread_s);
	worked = live->thread_s - working * c.last - live->pace.a.thread_s;
	ended = c.ended - live->pace.a.ended;
	if (!(worked > 0 && ended > 0))
		return;
	out->per_second = ended / worked * threads;
	left = (c.total - c.ended) / out->per_second - c.last;
	if (left > 0) /* else all should have ended by now, so no estimate is possible */
		out->seconds_left = left;
}

void live_progress(struct live *live, struct live_progress *out)
{
	live_progress_at(live, live_now_ms(), out);
}

static void put_left(double seconds, char *out, size_t n)
{
	if (seconds < 100)
		snprintf(out, n, ", about %.0f s left", seconds);
	else if (seconds < 6000)
		snprintf(out, n, ", about %.0f min left", seconds / 60);
	else
		snprintf(out, n, ", about %.1f h left", seconds / 3600);
}

void live_progress_text(const struct live_progress *p, const struct live_cluster *c, double done,
			char *line, size_t n)
{
	char of[64] = "", rate[48] = "", left[64] = "";
	double per_second = p->known ? p->per_second : c->rate[LIVE_RATE_TASKS];

	if (p->known)
		snprintf(of, sizeof(of), "of %.0f %s", p->total, p->chunks ? "chunks" : "tasks");
	if (per_second > 0)
		snprintf(rate, sizeof(rate), ", %.*f/s", per_second < 0.1 ? 3 : 1, per_second);
	if (!isnan(p->seconds_left))
		put_left(p->seconds_left, left, sizeof(left));
	snprintf(line, n, "%.0f %s%s%s", p->known ? p->done : done, p->known ? of : "done", rate,
		 left);
}
