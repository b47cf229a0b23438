/* SPDX-License-Identifier: BSD-3-Clause */
/* check_results.c - results that the client gathered: bytes that left the workers on Dask's
 * connections and that no worker received. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

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

static bool counts(const struct run *r, double t)
{
	return t >= r->start && t <= fmin(r->others.next_start, r->stop + AFTER_SECONDS);
}

/* Returns how many; the latest totals are left out if they fall, as nothing corrects them yet. */
static size_t steps_of(const struct worker *w, enum history_series s, struct history_step *v)
{
	const struct history_point *p;
	size_t n = 0;

	for (p = w->history.v; p < w->history.v + w->history.n; p++) {
		if (p->known >> s & 1u)
			v[n++] = (struct history_step){p->boot_ns, p->v[s]};
	}
	n -= n > 1 && v[n - 1].sum < v[n - 2].sum;
	return history_mend(v, n);
}

static void add_step(struct gathered *g, double from, double to, uint64_t sent, uint64_t received)
{
	g->sent += (double)sent - BYTES_PER_SECOND * (to - from);
	g->received += (double)received;
	if ((double)sent >= LARGE_STEP_BYTES)
		g->until = fmax(g->until, from);
}

/* Totals after the first task's start and before another run's; both sums between the same ones.
 * The time until the first of them is left out, as results of an earlier run may have left then.
 * 0 or -ENOMEM. */
static int add_worker(struct gathered *g, const struct run *r, const struct worker *w)
{
	struct history_step *sent = calloc(2 * w->history.n + 1, sizeof(*sent)), *received;
	size_t n, m, i, k = 0;
	double t, before = (double)NAN;
	uint64_t s = 0, c = 0;

	if (!sent)
		return -ENOMEM;
	received = sent + w->history.n;
	n = steps_of(w, HISTORY_comm_write_bytes, sent);
	m = steps_of(w, HISTORY_comm_read_bytes, received);
	for (i = 0; i < n; i++) {
		while (k < m && received[k].at_ns < sent[i].at_ns)
			k++;
		t = worker_utc(w, sent[i].at_ns);
		if (k == m || received[k].at_ns != sent[i].at_ns || !counts(r, t))
			continue;
		if (!isnan(before))
			add_step(g, before, t, sent[i].sum - s, received[k].sum - c);
		before = t;
		s = sent[i].sum;
		c = received[k].sum;
	}
	free(sent);
	return 0;
}

static bool is_unknown(const struct run *r, const struct worker *w)
{
	const uint32_t both = 1u << HISTORY_comm_write_bytes | 1u << HISTORY_comm_read_bytes;
	const struct history_point *p;

	for (p = w->history.v; p < w->history.v + w->history.n; p++) {
		if ((p->known & both) != both && counts(r, worker_utc(w, p->boot_ns)))
			return true;
	}
	return false;
}

enum verdict finding_large_results(const struct report *r, struct draft *d)
{
	const struct run *run = r->run;
	struct gathered g = {.until = run->stop};
	double bytes, after, wall = r->facts->wall_time;
	size_t i;

	if (run->plain || !run->attempts.n)
		return CHECK_IDLE;
	for (i = 0; i < run->workers.n && !g.unknown && !d->no_memory; i++) {
		g.unknown = is_unknown(run, run->workers.v[i]);
		d->no_memory = add_worker(&g, run, run->workers.v[i]) != 0;
	}
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
