/* SPDX-License-Identifier: BSD-3-Clause */
/* timeline.c - from the workers' totals to the bins of a run (timeline.h). */
#include "collector/runs/timeline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One series of one worker: its known values over time. */
struct steps {
	struct history_step *v;
	size_t n, cap;
};

static int allocate(struct timeline *t)
{
	int s;

	t->workers = calloc(t->bins, sizeof(*t->workers));
	t->running = calloc(t->bins, sizeof(*t->running));
	if (!t->workers || !t->running)
		return -ENOMEM;
	for (s = 0; s < HISTORY_SERIES; s++) {
		t->sum[s] = calloc(t->bins, sizeof(*t->sum[s]));
		t->unknown[s] = calloc(t->bins, sizeof(*t->unknown[s]));
		if (!t->sum[s] || !t->unknown[s])
			return -ENOMEM;
	}
	return 0;
}

void timeline_release(struct timeline *t)
{
	int s;

	free(t->workers);
	free(t->running);
	for (s = 0; s < HISTORY_SERIES; s++) {
		free(t->sum[s]);
		free(t->unknown[s]);
	}
	memset(t, 0, sizeof(*t));
}

static size_t bin_of(const struct timeline *t, uint64_t ns)
{
	size_t bin = ns > t->start_ns ? (ns - t->start_ns) / t->bin_ns : 0;

	return bin < t->bins ? bin : t->bins - 1;
}

static uint64_t bin_end(const struct timeline *t, size_t bin)
{
	uint64_t end = t->start_ns + (bin + 1) * t->bin_ns;

	return end < t->stop_ns ? end : t->stop_ns;
}

double timeline_bin_width(const struct timeline *t, size_t bin)
{
	return (double)(bin_end(t, bin) - (t->start_ns + bin * t->bin_ns)) / 1e9;
}

struct value timeline_value(const struct timeline *t, enum history_series s, size_t bin)
{
	return t->unknown[s][bin] ? value_null() : value_uint(t->sum[s][bin]);
}

__extension__ typedef unsigned __int128 wide;

/* part / whole of the amount, in whole numbers; part <= whole */
static uint64_t share(uint64_t amount, uint64_t part, uint64_t whole)
{
	return (uint64_t)((wide)amount * part / whole);
}

/* Spreads the work of (from, to], which overlaps the run, over its bins. */
static void spread(struct timeline *t, enum history_series s, uint64_t from, uint64_t to,
		   uint64_t amount)
{
	uint64_t end, done = 0, upto;
	size_t bin;

	from = from > t->start_ns ? from : t->start_ns;
	to = to < t->stop_ns ? to : t->stop_ns;
	if (!amount)
		return;
	for (bin = bin_of(t, from); done < amount && bin < t->bins; bin++) {
		end = bin_end(t, bin);
		upto = end >= to || to <= from ? amount : share(amount, end - from, to - from);
		t->sum[s][bin] += upto - done;
		done = upto;
	}
}

static int collect(struct steps *steps, const struct worker *w, const uint64_t *utc_ns,
		   enum history_series s)
{
	const struct history *h = &w->history;
	uint64_t snapshot = 0;
	struct history_step *step;
	size_t i;

	steps->n = 0;
	for (i = 0; i < h->n; i++) {
		if (!(h->v[i].known >> s & 1u) || !utc_ns[i])
			continue;
		/* An unchanged snapshot adds nothing, but the last totals complete the sum all
		 * the same. */
		if (history_is_sampled(s) && snapshot && h->v[i].snapshot_ns == snapshot &&
		    i + 1 < h->n)
			continue;
		snapshot = h->v[i].snapshot_ns;
		step = ARRAY_NEW(steps);
		if (!step)
			return -ENOMEM;
		*step = (struct history_step){utc_ns[i], h->v[i].v[s]};
		if (steps->n > 1 && step->at_ns < step[-1].at_ns)
			step->at_ns = step[-1].at_ns; /* another clock pair */
	}
	steps->n = history_mend(steps->v, steps->n);
	return 0;
}

/* The time of its last message in the run. */
static uint64_t worker_end_ns(const struct timeline *t, const struct worker *w)
{
	uint64_t last = worker_utc_ns(w, w->goodbye ? w->goodbye_boot_ns : w->last_boot_ns);

	return last < t->stop_ns ? last : t->stop_ns;
}

static void mark_unknown(struct timeline *t, enum history_series s, uint64_t from, uint64_t to)
{
	size_t bin, last;

	if (to < t->start_ns || from >= t->stop_ns || to < from)
		return;
	last = bin_of(t, to ? to - 1 : 0);
	for (bin = bin_of(t, from); bin <= last; bin++)
		t->unknown[s][bin] = true;
}

static void add_series(struct timeline *t, const struct worker *w, const struct steps *steps,
		       uint64_t first_ns, enum history_series s)
{
	uint64_t tail = (uint64_t)(TIMELINE_TAIL_SECONDS * 1e9), end = worker_end_ns(t, w);
	struct history_step before = {first_ns, 0};
	double length;
	size_t i;

	for (i = 0; i < steps->n; i++) {
		const struct history_step *now = &steps->v[i];

		if (now->at_ns > t->start_ns && before.at_ns < t->stop_ns) {
			spread(t, s, before.at_ns, now->at_ns, now->sum - before.sum);
			length = (double)(now->at_ns - before.at_ns) / 1e9;
			t->resolution = fmax(t->resolution, length);
		}
		before = *now;
	}
	if (!steps->n)
		mark_unknown(t, s, first_ns, end);
	else if (end > before.at_ns + tail)
		mark_unknown(t, s, t->start_ns + (bin_of(t, before.at_ns) + 1) * t->bin_ns, end);
}

static int add_worker(struct timeline *t, const struct worker *w, struct steps *steps)
{
	uint64_t *utc_ns = calloc(w->history.n ? w->history.n : 1, sizeof(*utc_ns));
	uint64_t first_ns = worker_utc_ns(w, w->first_boot_ns);
	size_t i;
	int s, rc = utc_ns ? 0 : -ENOMEM;

	for (i = 0; !rc && i < w->history.n; i++)
		utc_ns[i] = worker_utc_ns(w, w->history.v[i].boot_ns);
	for (s = 0; !rc && s < HISTORY_SERIES; s++) {
		rc = collect(steps, w, utc_ns, (enum history_series)s);
		if (!rc)
			add_series(t, w, steps, first_ns, (enum history_series)s);
	}
	free(utc_ns);
	return rc;
}

/* Adds to each bin its share of the time between two times. */
static void add_presence(struct timeline *t, double *share_of, uint64_t from, uint64_t to)
{
	uint64_t left, right, width;
	size_t bin;

	from = from > t->start_ns ? from : t->start_ns;
	to = to < t->stop_ns ? to : t->stop_ns;
	for (bin = bin_of(t, from); from < to && bin < t->bins; bin++) {
		left = t->start_ns + bin * t->bin_ns;
		right = bin_end(t, bin);
		if (left >= to)
			break;
		width = right - left;
		left = left > from ? left : from;
		right = right < to ? right : to;
		share_of[bin] += (double)(right - left) / (double)width;
	}
}

static void choose_bins(struct timeline *t)
{
	uint64_t length = t->stop_ns - t->start_ns;

	t->bin_ns = TIMELINE_BIN_NS;
	while ((length - 1) / t->bin_ns >= TIMELINE_BINS)
		t->bin_ns *= 2;
	t->bins = (length - 1) / t->bin_ns + 1;
	t->bin_seconds = (double)t->bin_ns / 1e9;
}

static void run_edges(struct timeline *t, const struct run *run)
{
	const struct attempt *a;
	size_t i;

	t->start_ns = UINT64_MAX;
	for (i = 0; i < run->attempts.n; i++) {
		a = run->attempts.v[i];
		if (a->begin_ns && a->begin_ns < t->start_ns)
			t->start_ns = a->begin_ns;
		if (a->end_ns > t->stop_ns)
			t->stop_ns = a->end_ns;
	}
	if (t->stop_ns == t->start_ns)
		t->stop_ns++; /* an instant needs a length, too */
}

int timeline_build(struct timeline *t, const struct run *run)
{
	struct steps steps = {0};
	const struct worker *w;
	size_t i;
	int rc;

	memset(t, 0, sizeof(*t));
	t->start = t->stop = t->bin_seconds = t->resolution = (double)NAN;
	run_edges(t, run);
	if (t->start_ns >= t->stop_ns)
		return 0;
	t->start = (double)t->start_ns / 1e9;
	t->stop = (double)t->stop_ns / 1e9;
	choose_bins(t);
	rc = allocate(t);
	for (i = 0; i < run->workers.n && !rc; i++) {
		w = run->workers.v[i];
		rc = add_worker(t, w, &steps);
		if (!rc)
			add_presence(t, t->workers, worker_utc_ns(w, w->first_boot_ns),
				     w->goodbye || w->silent ? worker_end_ns(t, w) : t->stop_ns);
	}
	for (i = 0; i < run->attempts.n && !rc; i++)
		add_presence(t, t->running, run->attempts.v[i]->begin_ns,
			     run->attempts.v[i]->end_ns);
	free(steps.v);
	return rc;
}
