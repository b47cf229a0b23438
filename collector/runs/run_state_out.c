/* SPDX-License-Identifier: BSD-3-Clause */
/* run_state_out.c - the state of a run in words and as JSON. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "collector/emit/emit_table.h"
#include "collector/emit/emit_text.h"
#include "collector/runs/run_state.h"

#define NAME_COLUMNS 48
#define ERROR_COLUMNS 120

struct line {
	char *text;
	size_t n;
};

__attribute__((format(printf, 2, 3))) static void say(struct line *l, const char *fmt, ...)
{
	size_t used = strlen(l->text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(l->text + used, l->n - used, fmt, ap);
	va_end(ap);
}

/* A name from the run: cleaned, and cut in the middle. */
static void say_name(struct line *l, const char *before, const char *name)
{
	char copy[256];

	if (!name)
		return;
	snprintf(copy, sizeof(copy), "%s", name);
	text_shorten(text_clean(copy), NAME_COLUMNS);
	say(l, "%s%s", before, copy);
}

/* A task's key without Dask's hash at its end, which is of no use to people. */
static void say_key(struct line *l, const char *before, const struct attempt *a)
{
	const char *dash = a->key ? strrchr(a->key, '-') : NULL;
	char copy[256];

	if (dash && strspn(dash + 1, "0123456789abcdef") == 32 && !dash[33]) {
		snprintf(copy, sizeof(copy), "%.*s", (int)(dash - a->key), a->key);
		say_name(l, before, copy);
	} else {
		say_name(l, before, a->key ? a->key : a->prefix);
	}
}

/* "ValueError: no muons" */
static void say_words(struct line *l, const char *type, const char *text)
{
	char copy[ERROR_COLUMNS * 4];

	snprintf(copy, sizeof(copy), "%s%s%s", type, *type && text ? ": " : "", text ? text : "");
	text_shorten(text_clean(copy), ERROR_COLUMNS);
	say(l, "%s", copy);
}

static void say_clock(struct line *l, const char *before, double utc)
{
	time_t t = isnan(utc) ? 0 : (time_t)utc;
	char text[16];
	struct tm tm;

	if (!isnan(utc) && gmtime_r(&t, &tm) && strftime(text, sizeof(text), "%H:%M:%S", &tm))
		say(l, "%s%s UTC", before, text);
}

static void say_waiting(const struct run_state *s, struct line *l)
{
	if (s->run->running)
		say(l, "%zu task%s under way", s->run->running, plural(s->run->running));
	if (s->waiting > 0)
		say(l, "%s%.0f ready on the workers", s->run->running ? ", " : "", s->waiting);
}

/* ": recv on peer 10.0.0.7:1094 for 23.00 s at a.py:3 f" */
static void say_stuck(const struct run_state *s, struct line *l)
{
	const struct doing *d = s->stuck;
	char seconds[HUMAN_BYTES];

	say(l, ": %.47s", d->call);
	if (!strcmp(d->kind, "GIL")) {
		say(l, " for the GIL");
	} else if (*d->object) {
		say(l, " on %s%s", d->kind, *d->kind ? " " : "");
		say_name(l, "", d->object);
	}
	say(l, " for %s", human(value_real(fmax(s->now - s->stuck_since, 0)), AS_SECONDS, seconds));
	if (*d->line)
		say_name(l, " at ", d->line);
}

static void say_in_call(const struct run_state *s, struct line *l)
{
	const struct attempt *a = s->in_call;
	const struct worker *w = a->worker;
	struct value thread = attempt_u64(a, TASK_F_thread);

	say_key(l, "; still in a call: ", a);
	if (w->host && w->pid.type == VALUE_UINT)
		say(l, " on %.60s, pid %llu", w->host, (unsigned long long)w->pid.v.u);
	if (thread.type == VALUE_UINT)
		say(l, ", thread %llu", (unsigned long long)thread.v.u);
	say_clock(l, ", since ", attempt_begin(a));
	if (s->stuck)
		say_stuck(s, l);
}

static void say_stalled(const struct run_state *s, struct line *l)
{
	char quiet[HUMAN_BYTES];

	if (s->why == RUN_WHY_NO_WORKER) {
		say(l,
		    ": no worker is left; the client was waiting for %.0f task%s when the last "
		    "worker left",
		    s->client_waits, plural((uint64_t)s->client_waits));
		say_clock(l, ", at ", s->now);
		return;
	}
	say(l, " for %s: ", human(value_real(s->now - s->since), AS_SECONDS, quiet));
	say_waiting(s, l);
	if (s->why == RUN_WHY_UNKNOWN)
		say(l, "; the workers' reports do not explain it");
	if (s->paused) {
		say(l, "; %zu of %zu worker%s paused", s->paused, s->workers, plural(s->workers));
		if (!isnan(s->paused_percent))
			say(l, ", at %.0f %% of the memory limit", s->paused_percent);
	}
	if (s->in_call)
		say_in_call(s, l);
}

static void say_failed(const struct run_state *s, struct line *l)
{
	const struct attempt *a = s->failed;
	struct value from = attempt_i64(a, TASK_F_entrystart),
		     to = attempt_i64(a, TASK_F_entrystop);

	const struct attempt_shared *shared = a->c.shared;

	say(l, ": ");
	if (shared && shared->error_cause)
		say_words(l, "", shared->error_cause);
	else if (shared && shared->error_type)
		say_words(l, shared->error_type, shared->error_text);
	say(l, "%s%zu task%s failed", shared && shared->error_type ? "; " : "", s->failures,
	    plural(s->failures));
	say_key(l, ", first ", a);
	say_name(l, ", dataset ", a->dataset);
	say_name(l, ", file ", a->filename);
	if (from.type == VALUE_INT && to.type == VALUE_INT)
		say(l, ", entries %lld to %lld", (long long)from.v.i, (long long)to.v.i);
}

static void say_interrupted(const struct run_state *s, struct line *l)
{
	switch (s->why) {
	case RUN_WHY_CLIENT_LEFT:
	case RUN_WHY_TAKEN_BACK:
		say(l, ": its client %s; %llu task%s on the workers had not ended",
		    s->why == RUN_WHY_CLIENT_LEFT ? "left" : "took tasks back",
		    (unsigned long long)s->taken_back, plural(s->taken_back));
		break;
	case RUN_WHY_CLOSED:
		say(l, ": the cluster was closed with %zu task%s under way", s->unfinished,
		    plural(s->unfinished));
		break;
	default:
		say(l, ": %zu task%s ended with %s and ", s->unfinished, plural(s->unfinished),
		    s->unfinished == 1 ? "its worker" : "their workers");
		/* Records of the last moment of a worker that sent no goodbye are lost. */
		if (s->doubtful)
			say(l, "may have run again: %zu worker%s sent no goodbye", s->silent,
			    plural(s->silent));
		else
			say(l, "did not run again");
	}
}

const char *run_state_name(enum run_state_id id)
{
	static const char *const names[RUN_STATES] = {
		[RUN_STATE_RUNNING] = "running", [RUN_STATE_FINISHED] = "finished",
		[RUN_STATE_FAILED] = "failed",	 [RUN_STATE_INTERRUPTED] = "interrupted",
		[RUN_STATE_STALLED] = "stalled",
	};

	return names[id];
}

const char *run_why_name(enum run_state_why why)
{
	static const char *const names[RUN_WHYS] = {
		[RUN_WHY_TASK_FAILED] = "task failed",	   [RUN_WHY_PAUSED] = "workers paused",
		[RUN_WHY_IN_CALL] = "task in a call",	   [RUN_WHY_UNKNOWN] = "unknown",
		[RUN_WHY_NO_WORKER] = "no worker",	   [RUN_WHY_CLIENT_LEFT] = "client left",
		[RUN_WHY_TAKEN_BACK] = "tasks taken back", [RUN_WHY_CLOSED] = "cluster closed",
		[RUN_WHY_WORKERS_GONE] = "workers gone",
	};

	return names[why];
}

const char *run_state_sentence(const struct run_state *s, char *line, size_t n)
{
	struct line l = {line, n};

	snprintf(line, n, "%s", run_state_name(s->id));
	if (s->id == RUN_STATE_RUNNING) {
		say(&l, ": ");
		say_waiting(s, &l);
	} else if (s->id == RUN_STATE_STALLED) {
		say_stalled(s, &l);
	} else if (s->id == RUN_STATE_FAILED) {
		say_failed(s, &l);
	} else if (s->id == RUN_STATE_INTERRUPTED) {
		say_interrupted(s, &l);
	}
	return text_clean(line);
}

/* The task that failed, or that is still in a call; null if there is none. */
static void task_json(const struct attempt *a, struct json *j, const char *name)
{
	const struct worker *w = a ? a->worker : NULL;

	if (!a) {
		emit_value(j, name, value_null());
		return;
	}
	emit_object(j, name);
	emit_value(j, "key", value_text(a->key));
	emit_value(j, "prefix", value_text(a->prefix));
	emit_value(j, "function", value_text(a->c.shared ? a->c.shared->function : NULL));
	emit_value(j, "worker", value_text(w->label));
	emit_value(j, "host", value_text(w->host));
	emit_value(j, "pid", w->pid);
	emit_value(j, "thread", attempt_u64(a, TASK_F_thread));
	emit_value(j, "start", value_real(attempt_begin(a)));
	emit_value(j, "dataset", value_text(a->dataset));
	emit_value(j, "filename", value_text(a->filename));
	emit_value(j, "entrystart", attempt_i64(a, TASK_F_entrystart));
	emit_value(j, "entrystop", attempt_i64(a, TASK_F_entrystop));
	emit_value(j, "error_type", value_text(a->c.shared ? a->c.shared->error_type : NULL));
	emit_value(j, "error_text", value_text(a->c.shared ? a->c.shared->error_text : NULL));
	emit_value(j, "error_cause", value_text(a->c.shared ? a->c.shared->error_cause : NULL));
	emit_end(j);
}

/* Its call; null: unknown. */
static void stuck_json(const struct run_state *s, struct json *j)
{
	const struct doing *d = s->stuck;

	if (!d) {
		emit_value(j, "stuck", value_null());
		return;
	}
	emit_object(j, "stuck");
	emit_value(j, "call", value_text(d->call));
	emit_value(j, "kind", value_text(*d->kind ? d->kind : NULL));
	emit_value(j, "object", value_text(*d->object ? d->object : NULL));
	emit_value(j, "line", value_text(*d->line ? d->line : NULL));
	emit_value(j, "seconds", value_real(fmax(s->now - s->stuck_since, 0)));
	emit_end(j);
}

void run_state_json(const struct run_state *s, struct json *j, const char *name)
{
	char line[RUN_SENTENCE_BYTES];

	emit_object(j, name);
	emit_value(j, "state", value_text(run_state_name(s->id)));
	emit_value(j, "why", value_text(run_why_name(s->why)));
	emit_value(j, "text", value_text(run_state_sentence(s, line, sizeof(line))));
	emit_value(j, "at", value_real(s->now));
	emit_value(j, "last_task_edge", value_real(s->since));
	emit_value(j, "running", value_uint(s->run->running));
	emit_value(j, "ready", value_real(s->waiting));
	emit_value(j, "workers", value_uint(s->workers));
	emit_value(j, "paused_workers", value_uint(s->paused));
	emit_value(j, "silent_workers", value_uint(s->silent));
	emit_value(j, "paused_memory_percent", value_real(s->paused_percent));
	emit_value(j, "paused_since", value_real(s->paused_since));
	emit_value(j, "failed_tasks", value_uint(s->failures));
	emit_value(j, "unfinished_tasks", value_uint(s->unfinished));
	emit_value(j, "doubtful_tasks", value_uint(s->doubtful));
	emit_value(j, "tasks_taken_back", value_uint(s->taken_back));
	emit_value(j, "client_waits_for", value_real(s->client_waits));
	task_json(s->failed, j, "first_failed");
	task_json(s->in_call, j, "longest_running");
	stuck_json(s, j);
	emit_end(j);
}
