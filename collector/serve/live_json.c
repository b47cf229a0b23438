/* SPDX-License-Identifier: BSD-3-Clause */
/* live_json.c - live.json, see live.h. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collector/serve/live_parts.h"
#include "common/clock.h"
#include "common/log.h"
#include "version.h"

const char *const live_class_ids[CREMA_TIMES] = {
#define TIME(id, help) #id,
#define COUNT(id, unit, help)
#include "counters.def"
#undef TIME
#undef COUNT
};

static void set(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

static void set_real(json_t *object, const char *key, double value)
{
	json_object_set_new(object, key, isnan(value) ? json_null() : json_real(value));
}

/* whole numbers that the workers sent as such */
static void set_whole(json_t *object, const char *key, double value)
{
	json_object_set_new(object, key,
			    isnan(value) || fabs(value) > 0x1p53 ? json_null()
								 : json_integer((json_int_t)value));
}

static void set_text(json_t *object, const char *key, const char *text)
{
	json_object_set_new(object, key, *text ? json_string(text) : json_null());
}

/* A value of the totals, null if no worker could count it. */
static void set_total(json_t *object, const char *key, const struct live_cluster *c, unsigned int i)
{
	if (c->workers_counted && c->without[i] == c->workers_counted)
		json_object_set_new(object, key, json_null());
	else
		set(object, key, c->total[i]);
}

static json_t *workers_json(const struct live_cluster *c)
{
	json_t *object = json_object();

	set(object, "connected", c->connected);
	set(object, "silent", c->silent);
	set(object, "lost", c->lost);
	set(object, "ended", c->gone_ended);
	set(object, "killed", c->gone_killed);
	set(object, "seen", c->workers_seen);
	set_whole(object, "threads", c->threads);
	return object;
}

static json_t *tasks_json(const struct live *live, const struct live_cluster *c)
{
	json_t *object = json_object();
	double remaining = c->executing + c->ready + c->long_running;
	double done = (double)(c->total[LIVE_tasks_done] - live->since_done);

	set_whole(object, "running", c->running);
	set_total(object, "started", c, LIVE_tasks_started);
	set_total(object, "done", c, LIVE_tasks_done);
	set_total(object, "refused", c, LIVE_tasks_refused);
	set(object, "ok", c->ended[LIVE_OK]);
	set(object, "erred", c->ended[LIVE_ERRED]);
	set(object, "killed", c->ended[LIVE_KILLED]);
	set(object, "other", c->ended[LIVE_OTHER]);
	set(object, "chunks", c->chunks);
	set(object, "events", c->events);
	set_whole(object, "executing", c->executing);
	set_whole(object, "ready", c->ready);
	set_whole(object, "long_running", c->long_running);
	set_whole(object, "fetching", c->fetching);
	set_whole(object, "remaining", remaining);
	set_whole(object, "known", isnan(live->since) ? (double)NAN : done + remaining);
	return object;
}

static json_t *activity_json(const struct live *live, const struct live_cluster *c)
{
	json_t *object = json_object();
	bool idle = isnan(live->since);

	set_real(object, "since", live->since);
	set(object, "done", idle ? 0 : c->total[LIVE_tasks_done] - live->since_done);
	set(object, "events", idle ? 0 : c->events - live->since_events);
	set(object, "read_bytes",
	    idle ? 0 : live_layer(c->total, LIVE_LAYER_read) - live->since_read);
	return object;
}

static json_t *rates_json(const struct live_cluster *c)
{
	json_t *object = json_object(), *bytes = json_object(), *threads = json_object();
	unsigned int i;

	set_real(object, "tasks_per_second", c->rate[LIVE_RATE_TASKS]);
	set_real(object, "events_per_second", c->rate[LIVE_RATE_EVENTS]);
	set_real(object, "cpu", c->rate[LIVE_RATE_CPU]);
	for (i = 0; i < LIVE_LAYERS; i++)
		set_real(bytes, live_layer_id(i), c->rate[LIVE_RATE_LAYER + i]);
	for (i = 0; i < CREMA_TIMES; i++)
		set_real(threads, live_class_ids[i], c->rate[LIVE_RATE_CLASS + i]);
	json_object_set_new(object, "bytes_per_second", bytes);
	json_object_set_new(object, "threads_in", threads);
	return object;
}

static json_t *totals_json(const struct live_cluster *c)
{
	json_t *object = json_object();
	unsigned int i;

	for (i = 0; i < LIVE_LAYERS; i++) {
		if (live_layer_unseen(c, i))
			json_object_set_new(object, live_layer_id(i), json_null());
		else
			set(object, live_layer_id(i), live_layer(c->total, i));
	}
	return object;
}

static json_t *memory_json(const struct live_cluster *c)
{
	json_t *object = json_object();

	set_whole(object, "rss_bytes", c->rss_bytes);
	set_whole(object, "limit_bytes", c->limit_bytes);
	set_whole(object, "managed_bytes", c->managed_bytes);
	set_whole(object, "spilled_bytes", c->spilled_bytes);
	set_real(object, "largest_ratio", c->largest_ratio);
	set(object, "near_limit", c->near_limit);
	return object;
}

static json_t *completeness_json(const struct live_cluster *c)
{
	uint64_t refused = c->total[LIVE_records_refused]; /* known, and gaps as well */
	json_t *object = json_object();

	set(object, "records_lost", c->records_lost > refused ? c->records_lost - refused : 0);
	set_total(object, "records_refused", c, LIVE_records_refused);
	set_total(object, "tasks_refused", c, LIVE_tasks_refused);
	set(object, "workers_with_notes", c->with_notes);
	return object;
}

static int by_time(const void *pa, const void *pb)
{
	const struct live_prefix *a = *(const struct live_prefix *const *)pa;
	const struct live_prefix *b = *(const struct live_prefix *const *)pb;

	return a->wall_ns < b->wall_ns	 ? 1
	       : a->wall_ns > b->wall_ns ? -1
					 : strcmp(a->name, b->name);
}

static json_t *prefixes_json(const struct live *live)
{
	const struct live_prefix *prefix[LIVE_PREFIXES + 1];
	size_t i, n = live_prefixes(live, prefix);
	json_t *list = json_array(), *row;

	qsort(prefix, n, sizeof(*prefix), by_time);
	for (i = 0; i < n; i++) {
		row = json_object();
		json_object_set_new(row, "prefix", json_string(prefix[i]->name));
		set(row, "ok", prefix[i]->ended[LIVE_OK]);
		set(row, "erred", prefix[i]->ended[LIVE_ERRED]);
		set(row, "killed", prefix[i]->ended[LIVE_KILLED]);
		set(row, "other", prefix[i]->ended[LIVE_OTHER]);
		set_real(row, "wall_seconds", (double)prefix[i]->wall_ns / 1e9);
		json_array_append_new(list, row);
	}
	return list;
}

void live_json(struct live *live, uint64_t started_mono_ns, int journal_error,
	       const char *journal_over, struct buf *out)
{
	json_t *root = json_object();
	struct live_cluster c;
	char *text;
	size_t n;

	live_cluster(live, &c);
	json_object_set_new(root, "version", json_string(CREMA_VERSION));
	set_real(root, "time", (double)clock_real_ns() / 1e9);
	set_real(root, "uptime_seconds", (double)(clock_mono_ns() - started_mono_ns) / 1e9);
	json_object_set_new(root, "workers", workers_json(&c));
	json_object_set_new(root, "tasks", tasks_json(live, &c));
	json_object_set_new(root, "activity", activity_json(live, &c));
	json_object_set_new(root, "rates", rates_json(&c));
	json_object_set_new(root, "totals", totals_json(&c));
	json_object_set_new(root, "memory", memory_json(&c));
	json_object_set_new(root, "completeness", completeness_json(&c));
	set_text(root, "journal_over", journal_over);
	set_text(root, "journal_error", journal_error ? log_error(journal_error) : "");
	json_object_set_new(root, "prefixes", prefixes_json(live));
	text = json_dumps(root, JSON_COMPACT);
	n = text ? strlen(text) : 0;
	if (n > 1) {
		/* The rows take the place of the brace at its end. */
		buf_add(out, text, n - 1);
		buf_add(out, ",\n", 2);
		live_json_rows(live, out);
		buf_add(out, "}\n", 2);
	}
	free(text);
	json_decref(root);
}
