/* SPDX-License-Identifier: BSD-3-Clause */
/* live_stall.c - whether tasks that exist also begin and end. */
#include <math.h>
#include <stdio.h>

#include "collector/emit/emit_table.h"
#include "collector/live/live_parts.h"
#include "collector/runs/run_state.h"
#include "common/rows.h"

/* The same as for a run in the journal (runs/run_state.h), but with the mean of tasks. */
#define STALL_MEANS 10.0
#define MOVED_BYTES 1000u /* since the second before */
#define STALL_CORES 0.2	  /* for each running task: then it computes */

static bool has_tasks(const struct live_cluster *c)
{
	return c->left_behind > 0 || c->running > 0 || c->ready > 0 || c->executing > 0 ||
	       c->long_running > 0;
}

void live_watch_edges(struct live *live, int64_t now_ms)
{
	uint64_t edges = live->total[LIVE_tasks_started] + live->total[LIVE_tasks_done];
	struct live_cluster c;

	live_cluster(live, &c);
	if (rows_moved_bytes(live->total + LIVE_TASK) >= live->moved_before + MOVED_BYTES) {
		live->moved_before = rows_moved_bytes(live->total + LIVE_TASK);
		live->moved_ms = now_ms;
	}
	if (edges != live->edges_before || !has_tasks(&c))
		live->edge_ms = now_ms;
	live->edges_before = edges;
}

static double mean_wall(const struct live *live)
{
	const struct live_prefix *prefix[LIVE_PREFIXES + 1];
	size_t i, k, n = live_prefixes(live, prefix);
	double wall = 0, ended = 0;

	for (i = 0; i < n; i++) {
		wall += (double)prefix[i]->wall_ns / 1e9;
		for (k = 0; k < LIVE_STATUSES; k++)
			ended += (double)prefix[i]->ended[k];
	}
	return ended > 0 ? wall / ended : 0;
}

enum live_doing live_doing(const struct live *live, const struct live_cluster *c)
{
	double cores = c->rate[LIVE_RATE_CPU];

	if (!has_tasks(c))
		return LIVE_IDLE;
	if (c->left_behind > 0)
		return c->quiet_seconds >= run_stall_seconds ? LIVE_STALLED : LIVE_RUNNING;
	if (!(c->quiet_seconds >= run_stall_seconds) || !(c->still_seconds >= run_stall_seconds) ||
	    c->quiet_seconds < STALL_MEANS * mean_wall(live) ||
	    cores >= STALL_CORES * fmax(c->running, 1))
		return LIVE_RUNNING;
	return LIVE_STALLED;
}

const char *live_doing_name(enum live_doing doing)
{
	static const char *const names[LIVE_DOINGS] = {"idle", "running", "stalled"};

	return names[doing];
}

void live_stall_text(const struct live *live, const struct live_cluster *c, char *line, size_t n)
{
	char quiet[HUMAN_BYTES], more[96] = "", percent[48] = "", call[320];

	if (c->left_behind > 0) {
		snprintf(line, n,
			 "stalled for %s: no worker is left; a client was waiting for %.0f task%s "
			 "when the last worker left",
			 human(value_real(c->quiet_seconds), AS_SECONDS, quiet), c->left_behind,
			 c->left_behind > 1 ? "s" : "");
		return;
	}
	live_calls_text(live, call, sizeof(call));
	if (!isnan(c->paused_ratio))
		snprintf(percent, sizeof(percent), ", at %.0f %% of the memory limit",
			 c->paused_ratio * 100);
	if (c->paused)
		snprintf(more, sizeof(more), "; %llu of %llu workers paused%s",
			 (unsigned long long)c->paused, (unsigned long long)c->connected, percent);
	snprintf(line, n, "stalled for %s: %.0f under way, %.0f ready on the workers%s%s%s",
		 human(value_real(c->quiet_seconds), AS_SECONDS, quiet), fmax(c->running, 0),
		 fmax(c->ready, 0), more, *call ? "; " : "", call);
}
