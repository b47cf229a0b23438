/* SPDX-License-Identifier: BSD-3-Clause */
/* check_results.c - results that the client gathered: bytes that left the workers on Dask's
 * connections and that no worker received. */
#include <math.h>

#include "collector/findings/check.h"

#define LARGE_STEP_BYTES 1e6 /* between two totals of a worker: more than messages about tasks */
#define AFTER_SECONDS 60.0   /* readers of one run keep totals for that long (selection.h) */
/* Messages of a worker that are not results. */
#define BYTES_PER_TASK 10e3
#define BYTES_PER_SECOND 100e3

struct gathered {
	double sent, received;
	double until; /* UTC: covered at least until then */
	bool unknown;
};

/* Totals after the first task's start and before another run's. The time until the first of them is
 * left out, as results of an earlier run may have left then. */
static void add_worker(struct gathered *g, const struct run *r, const struct worker *w)
{
	double end = fmin(r->others.next_start, r->stop + AFTER_SECONDS), t;
	const struct history_point *p, *before = NULL;
	double sent;

	for (p = w->history.v; p < w->history.v + w->history.n; p++) {
		t = worker_utc(w, p->boot_ns);
		if (!(t >= r->start) || !(t <= end))
			continue;
		if (!(p->known >> HISTORY_comm_write_bytes & 1u) ||
		    !(p->known >> HISTORY_comm_read_bytes & 1u)) {
			g->unknown = true;
			continue;
		}
		if (before) {
			sent = (double)(p->v[HISTORY_comm_write_bytes] -
					before->v[HISTORY_comm_write_bytes]);
			g->sent += sent;
			g->received += (double)(p->v[HISTORY_comm_read_bytes] -
						before->v[HISTORY_comm_read_bytes]);
			if (sent >= LARGE_STEP_BYTES)
				g->until = fmax(g->until, worker_utc(w, before->boot_ns));
			g->sent -= BYTES_PER_SECOND * (t - worker_utc(w, before->boot_ns));
		}
		before = p;
	}
}

enum verdict finding_large_results(const struct report *r, struct draft *d)
{
	const struct run *run = r->run;
	struct gathered g = {.until = run->stop};
	double bytes, after, wall = r->facts->wall_time;
	size_t i;

	if (run->plain || !run->attempts.n)
		return CHECK_IDLE;
	for (i = 0; i < run->workers.n; i++)
		add_worker(&g, run, run->workers.v[i]);
	if (g.unknown)
		return draft_unknown(d, "comm_write_bytes");
	bytes = g.sent - g.received - BYTES_PER_TASK * (double)run->attempts.n;
	if (!(bytes >= d->check->first) || bytes < d->check->second * wall)
		return CHECK_QUIET;
	after = fmax(0, g.until - run->stop);
	draft_evidence(d, "sent_bytes", value_real(bytes), "bytes");
	draft_evidence(d, "seconds_after_last_task", value_real(after), "s");
	draft_sentence(d, "workers sent at least %s of results to the client",
		       draft_human(d, value_real(bytes), AS_BYTES));
	if (after > 0) {
		draft_sentence_more(d, ", until %s or longer after the last task ended",
				    draft_human(d, value_real(after), AS_SECONDS));
		if (run->to > run->stop)
			draft_cost_least(d, fmin(after, run->to - run->stop));
	}
	if (run_concurrent(run))
		draft_sentence_more(d, "; those of %zu other run%s on these workers are included",
				    run_concurrent(run), run_concurrent(run) == 1 ? "" : "s");
	return draft_found(d, 0);
}
