/* SPDX-License-Identifier: BSD-3-Clause */
/* live_cluster.c - which workers are present, and the cluster as a whole. */
#include <math.h>
#include <string.h>

#include "collector/live/live_parts.h"

/* A sum over workers that report it; NAN if there are workers but none reports it, or no journal
 * was read. */
struct gauge {
	double sum;
	unsigned int known, asked;
};

static void gauge_add(struct gauge *g, double value)
{
	g->asked++;
	if (isnan(value))
		return;
	g->known++;
	g->sum += value;
}

static double gauge_value(const struct gauge *g, bool unread)
{
	return unread || (g->asked && !g->known) ? (double)NAN : g->sum;
}

struct gauges {
	struct gauge threads, running, executing, ready, long_running, fetching;
	struct gauge rss, limit, managed, spilled, rate[LIVE_RATES];
	double largest;
};

static void add_worker(struct gauges *g, const struct live_worker *w, struct live_cluster *out)
{
	double ratio = w->limit_bytes > 0 ? w->rss_bytes / w->limit_bytes : (double)NAN;
	unsigned int i;

	gauge_add(&g->threads, w->threads);
	gauge_add(&g->running, w->running);
	gauge_add(&g->executing, w->executing);
	gauge_add(&g->ready, w->ready);
	gauge_add(&g->long_running, w->long_running);
	gauge_add(&g->fetching, w->fetching);
	gauge_add(&g->rss, w->rss_bytes);
	gauge_add(&g->limit, w->limit_bytes);
	gauge_add(&g->managed, w->managed);
	gauge_add(&g->spilled, w->spilled);
	for (i = 0; i < LIVE_RATES; i++)
		gauge_add(&g->rate[i], live_rate(w, i));
	if (isnan(g->largest) || ratio > g->largest)
		g->largest = ratio;
	out->near_limit += ratio >= LIVE_NEAR_LIMIT;
	out->paused += w->paused;
	if (w->paused)
		out->paused_ratio = fmax(out->paused_ratio, ratio);
}

static void put_gauges(const struct gauges *g, struct live_cluster *out)
{
	unsigned int i;

	out->threads = gauge_value(&g->threads, out->unread);
	out->running = gauge_value(&g->running, out->unread);
	out->executing = gauge_value(&g->executing, out->unread);
	out->ready = gauge_value(&g->ready, out->unread);
	out->long_running = gauge_value(&g->long_running, out->unread);
	out->fetching = gauge_value(&g->fetching, out->unread);
	out->rss_bytes = gauge_value(&g->rss, out->unread);
	out->limit_bytes = gauge_value(&g->limit, out->unread);
	out->managed_bytes = gauge_value(&g->managed, out->unread);
	out->spilled_bytes = gauge_value(&g->spilled, out->unread);
	out->largest_ratio = g->largest;
	for (i = 0; i < LIVE_RATES; i++)
		out->rate[i] = gauge_value(&g->rate[i], out->unread);
}

/* The latest answer when the last worker went, if that one did not end normally. */
double live_left_behind(const struct live *live)
{
	const struct live_worker *w, *last = NULL, *asker = NULL;

	for (w = live->workers; w; w = w->next) {
		if (!last || w->heard_ms > last->heard_ms)
			last = w;
		if (w->told.known && (!asker || w->heard_ms > asker->heard_ms))
			asker = w;
	}
	if (!asker || (last->goodbye && !last->killed) || !(asker->told.clients > 0))
		return 0;
	return asker->told.tasks.total - asker->told.tasks.ended;
}

void live_cluster(struct live *live, struct live_cluster *out)
{
	struct gauges g = {.largest = (double)NAN};
	const struct live_worker *w;
	int64_t now = live_now_ms();
	enum live_state state;

	memset(out, 0, sizeof(*out));
	memcpy(out->total, live->total, sizeof(out->total));
	memcpy(out->without, live->without, sizeof(out->without));
	memcpy(out->ended, live->ended, sizeof(out->ended));
	out->unread = live->watching && !live->reach.any;
	out->losses_unknown = live->watching && !live->reach.losses;
	out->paused_ratio = (double)NAN;
	out->quiet_seconds = (double)(now - live->edge_ms) / 1e3;
	out->still_seconds = (double)(now - live->moved_ms) / 1e3;
	out->workers_seen = live->seen.n;
	out->lost = live->lost_gone;
	out->workers_counted = live->counted;
	out->gone_ended = live->gone_ended;
	out->gone_killed = live->gone_killed;
	out->chunks = live->chunks;
	out->events = live->events;
	out->records_lost = live->records_lost;
	out->records_bad = live->records_bad;
	out->with_notes = live->with_notes_gone;
	for (w = live->workers; w; w = w->next) {
		out->records_lost += live_lost(w);
		state = live_state(w, now);
		out->with_notes += w->notes;
		out->connected += state == LIVE_CONNECTED;
		out->silent += state == LIVE_SILENT;
		out->lost += state == LIVE_LOST;
		if (state == LIVE_CONNECTED)
			add_worker(&g, w, out);
	}
	put_gauges(&g, out);
	out->left_behind = out->connected ? 0 : live_left_behind(live);
}

bool live_is_idle(const struct live *live, uint64_t *ended)
{
	unsigned int i;

	for (i = 0, *ended = 0; i < LIVE_STATUSES; i++)
		*ended += live->ended[i];
	return isnan(live->since);
}
