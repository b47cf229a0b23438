/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live_json.c - live.json, see live.h. It is streamed: building a tree of a thousand rows would
 * stall the loop, and so every agent.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collector/emit/emit_json.h"
#include "collector/live/live_parts.h"
#include "common/clock.h"
#include "common/frame.h"
#include "common/log.h"
#include "common/rows.h"
#include "version.h"

#define MILLION 1e6

/* Unknown: null; to a millionth, large ones to a whole number. */
static struct value rounded(double v)
{
	double size = fabs(v);

	if (!isfinite(v) || size >= 0x1p53)
		return value_real(v);
	return value_real(size >= 1e9 ? round(v) : (round(v * MILLION) + 0.0) / MILLION);
}

/* Numbers that the workers sent as whole numbers. */
static struct value whole(double v)
{
	return isnan(v) || fabs(v) > 0x1p53 ? value_null() : value_int((int64_t)v);
}

static struct value text(const char *t)
{
	return value_text(*t ? t : NULL);
}

static void put(struct json *j, const char *key, uint64_t value)
{
	emit_value(j, key, value_uint(value));
}

/* A value of the totals, null if no worker could count it. */
static struct value total(const struct live_cluster *c, unsigned int i)
{
	bool unseen = c->unread || (c->workers_counted && c->without[i] == c->workers_counted);

	return unseen ? value_null() : value_uint(c->total[i]);
}

/* A count of workers or ended tasks. */
static void put_count(struct json *j, const char *key, const struct live_cluster *c, uint64_t value)
{
	emit_value(j, key, c->unread ? value_null() : value_uint(value));
}

static void put_total(struct json *j, const char *key, const struct live_cluster *c, unsigned int i)
{
	emit_value(j, key, total(c, i));
}

static void put_workers(struct json *j, const struct live_cluster *c)
{
	emit_object(j, "workers");
	put_count(j, "connected", c, c->connected);
	put_count(j, "silent", c, c->silent);
	put_count(j, "lost", c, c->lost);
	put_count(j, "ended", c, c->gone_ended);
	put_count(j, "killed", c, c->gone_killed);
	put_count(j, "seen", c, c->workers_seen);
	emit_value(j, "threads", whole(c->threads));
	emit_end(j);
}

static void put_tasks(struct json *j, const struct live *live, const struct live_cluster *c)
{
	double remaining = c->executing + c->ready + c->long_running;
	double done = (double)(c->total[LIVE_tasks_done] - live->since_work.done);

	emit_object(j, "tasks");
	emit_value(j, "running", whole(c->running));
	put_total(j, "started", c, LIVE_tasks_started);
	put_total(j, "done", c, LIVE_tasks_done);
	put_total(j, "refused", c, LIVE_tasks_refused);
	put_count(j, "ok", c, c->ended[LIVE_OK]);
	put_count(j, "erred", c, c->ended[LIVE_ERRED]);
	put_count(j, "killed", c, c->ended[LIVE_KILLED]);
	put_count(j, "other", c, c->ended[LIVE_OTHER]);
	put_count(j, "chunks", c, c->chunks);
	put_count(j, "events", c, c->events);
	emit_value(j, "executing", whole(c->executing));
	emit_value(j, "ready", whole(c->ready));
	emit_value(j, "long_running", whole(c->long_running));
	emit_value(j, "fetching", whole(c->fetching));
	emit_value(j, "remaining", whole(remaining));
	emit_value(j, "known", whole(isnan(live->since) ? (double)NAN : done + remaining));
	emit_end(j);
}

static void put_state(struct json *j, const struct live *live, const struct live_cluster *c)
{
	enum live_doing doing = live_doing(live, c);
	char line[512] = "";

	if (doing == LIVE_STALLED)
		live_stall_text(live, c, line, sizeof(line));
	emit_object(j, "state");
	emit_value(j, "state", value_text(live_doing_name(doing)));
	emit_value(j, "text", text(line));
	emit_value(j, "quiet_seconds",
		   doing == LIVE_IDLE ? value_null() : value_real(c->quiet_seconds));
	put_count(j, "paused_workers", c, c->paused);
	emit_value(j, "paused_memory_percent", rounded(c->paused_ratio * 100));
	emit_end(j);
}

static void put_progress(struct json *j, struct live *live, const struct live_cluster *c)
{
	double done = (double)(c->total[LIVE_tasks_done] - live->since_work.done);
	struct live_progress p;
	char line[160];

	live_progress(live, &p);
	if (isnan(live->since) && !p.known) {
		emit_value(j, "progress", value_null());
		return;
	}
	emit_object(j, "progress");
	emit_value(j, "of", value_text(p.chunks ? "chunks" : "tasks"));
	emit_value(j, "done", whole(p.known ? p.done : done));
	emit_value(j, "total", whole(p.known ? p.total : (double)NAN));
	emit_value(j, "tasks_per_second",
		   rounded(p.known ? p.per_second : c->rate[LIVE_RATE_TASKS]));
	emit_value(j, "seconds_left", rounded(p.seconds_left));
	live_progress_text(&p, c, done, line, sizeof(line));
	emit_value(j, "text", text(line));
	emit_end(j);
}

static void put_activity(struct json *j, const struct live *live, const struct live_cluster *c)
{
	bool idle = isnan(live->since);

	emit_object(j, "activity");
	emit_value(j, "since", value_real(live->since));
	put_count(j, "done", c, idle ? 0 : c->total[LIVE_tasks_done] - live->since_work.done);
	put_count(j, "events", c, idle ? 0 : c->events - live->since_work.events);
	put_count(j, "read_bytes", c,
		  idle ? 0 : live_layer(c->total, CREMA_L_read) - live->since_work.read);
	emit_end(j);
}

/* rate: of LIVE_RATES; for a worker to a millionth */
static void put_rates(struct json *j, const double *rate, struct value (*value)(double))
{
	unsigned int i;

	emit_value(j, "tasks_per_second", value(rate[LIVE_RATE_TASKS]));
	emit_value(j, "events_per_second", value(rate[LIVE_RATE_EVENTS]));
	emit_value(j, "cpu", value(rate[LIVE_RATE_CPU]));
	emit_object(j, "bytes_per_second");
	for (i = 0; i < CREMA_LAYERS; i++)
		emit_value(j, row_layers[i].id, value(rate[LIVE_RATE_LAYER + i]));
	emit_end(j);
	emit_object(j, "threads_in");
	for (i = 0; i < CREMA_TIMES; i++)
		emit_value(j, row_times[i].id, value(rate[LIVE_RATE_CLASS + i]));
	emit_end(j);
}

/* With the name used by all outputs, and with the layer's name. */
static void put_totals(struct json *j, const struct live_cluster *c)
{
	struct value value;
	unsigned int i;

	emit_object(j, "totals");
	for (i = 0; i < CREMA_LAYERS; i++) {
		value = live_layer_unseen(c, i) ? value_null()
						: value_uint(live_layer(c->total, i));
		emit_value(j, row_layers[i].name, value);
		emit_value(j, row_layers[i].id, value);
	}
	emit_end(j);
}

static void put_memory(struct json *j, const struct live_cluster *c)
{
	emit_object(j, "memory");
	emit_value(j, "rss_bytes", whole(c->rss_bytes));
	emit_value(j, "limit_bytes", whole(c->limit_bytes));
	emit_value(j, "managed_bytes", whole(c->managed_bytes));
	emit_value(j, "spilled_bytes", whole(c->spilled_bytes));
	emit_value(j, "largest_ratio", value_real(c->largest_ratio));
	put_count(j, "near_limit", c, c->near_limit);
	emit_end(j);
}

static void put_completeness(struct json *j, const struct live_cluster *c)
{
	/* Workers that may have lost more than they reported, or a journal that was not read. */
	bool unheard = c->silent + c->lost > 0 || c->losses_unknown;

	emit_object(j, "completeness");
	emit_at_least(j, "records_lost",
		      c->losses_unknown ? value_null() : value_uint(c->records_lost), unheard);
	emit_at_least(j, "records_refused", total(c, LIVE_records_refused), unheard);
	emit_at_least(j, "tasks_refused", total(c, LIVE_tasks_refused), unheard);
	put_count(j, "workers_with_notes", c, c->with_notes);
	emit_end(j);
}

static int by_time(const void *pa, const void *pb)
{
	const struct live_prefix *a = *(const struct live_prefix *const *)pa;
	const struct live_prefix *b = *(const struct live_prefix *const *)pb;

	return a->wall_ns < b->wall_ns	 ? 1
	       : a->wall_ns > b->wall_ns ? -1
					 : strcmp(a->name, b->name);
}

static void put_prefixes(struct json *j, const struct live *live, const struct live_cluster *c)
{
	const struct live_prefix *prefix[LIVE_PREFIXES + 1];
	size_t i, n = c->unread ? 0 : live_prefixes(live, prefix);

	qsort(prefix, n, sizeof(*prefix), by_time);
	emit_array(j, "prefixes");
	for (i = 0; i < n; i++) {
		emit_object(j, NULL);
		emit_value(j, "prefix", value_text(prefix[i]->name));
		put(j, "ok", prefix[i]->ended[LIVE_OK]);
		put(j, "erred", prefix[i]->ended[LIVE_ERRED]);
		put(j, "killed", prefix[i]->ended[LIVE_KILLED]);
		put(j, "other", prefix[i]->ended[LIVE_OTHER]);
		emit_value(j, "wall_seconds", value_real((double)prefix[i]->wall_ns / 1e9));
		emit_end(j);
	}
	emit_end(j);
}

static void put_row(struct json *j, const struct live_worker *w, bool here, int64_t now_ms)
{
	const double unknown = (double)NAN;
	char hex[FRAME_HEX_BYTES];
	double rate[LIVE_RATES];
	unsigned int i;

	emit_object(j, NULL);
	emit_value(j, "id", value_text(frame_hex(hex, w->id)));
	emit_value(j, "worker", text(w->address));
	emit_value(j, "name", text(w->name));
	emit_value(j, "host", text(w->host));
	put(j, "pid", w->pid);
	emit_value(j, "state", value_text(here ? "connected" : "silent"));
	emit_value(j, "threads", whole(w->threads));
	emit_value(j, "running", whole(here ? w->running : unknown));
	emit_value(j, "ready", whole(here ? w->ready : unknown));
	emit_value(j, "executing", whole(here ? w->executing : unknown));
	emit_value(j, "done",
		   live_known(&w->row, LIVE_tasks_done) ? value_uint(w->row.value[LIVE_tasks_done])
							: value_null());
	emit_value(j, "cpu_percent", rounded(here ? w->cpu_percent : unknown));
	emit_value(j, "rss_bytes", whole(here ? w->rss_bytes : unknown));
	emit_value(j, "limit_bytes", whole(w->limit_bytes));
	emit_value(j, "heard_seconds", rounded((double)(now_ms - w->heard_ms) / 1e3));
	emit_value(j, "paused", value_bool(here && w->paused));
	live_calls_longest(j, w);
	if (here) {
		for (i = 0; i < LIVE_RATES; i++)
			rate[i] = live_rate(w, i);
		put_rates(j, rate, rounded);
	}
	emit_end(j);
}

/* The connected ones first. */
static void put_rows(struct json *j, const struct live *live)
{
	static const enum live_state order[] = {LIVE_CONNECTED, LIVE_SILENT};
	const struct live_worker *w;
	int64_t now = live_now_ms();
	uint64_t n = 0;
	size_t i;

	emit_array(j, "worker_rows");
	for (i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		for (w = live->workers; w; w = w->next) {
			if (live_state(w, now) == order[i] && n++ < LIVE_JSON_WORKERS)
				put_row(j, w, order[i] == LIVE_CONNECTED, now);
		}
	}
	emit_end(j);
	put(j, "worker_rows_cut", n > LIVE_JSON_WORKERS ? n - LIVE_JSON_WORKERS : 0);
}

static void put_journal(struct json *j, const struct live_journal *journal)
{
	emit_value(j, "journal_over", text(journal->over));
	emit_value(j, "journal_error", text(journal->error ? log_error(journal->error) : ""));
	if (journal->each) {
		journal->each(journal->arg, j);
		return;
	}
	emit_value(j, "journals", value_null());
	emit_value(j, "journals_trouble", value_null());
}

void live_json(struct live *live, uint64_t started_mono_ns, const struct live_journal *journal,
	       struct buf *out)
{
	struct sink sink = {.out = out};
	struct live_cluster c;
	struct json json, *j = &json;

	live_cluster(live, &c);
	emit_init(j, &sink);
	emit_object(j, NULL);
	emit_value(j, "version", value_text(CREMA_VERSION));
	emit_value(j, "time", value_real((double)clock_real_ns() / 1e9));
	emit_value(j, "uptime_seconds",
		   value_real((double)(clock_mono_ns() - started_mono_ns) / 1e9));
	put_workers(j, &c);
	put_tasks(j, live, &c);
	put_progress(j, live, &c);
	put_state(j, live, &c);
	put_activity(j, live, &c);
	emit_object(j, "rates");
	put_rates(j, c.rate, value_real);
	emit_end(j);
	put_totals(j, &c);
	put_memory(j, &c);
	put_completeness(j, &c);
	put_journal(j, journal);
	put_prefixes(j, live, &c);
	put_rows(j, live);
	live_calls_rows(j, live);
	emit_end(j);
	if (sink.error)
		out->error = sink.error;
}
