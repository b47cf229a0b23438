/* SPDX-License-Identifier: BSD-3-Clause */
/* retain_choose.c - see retain_choose.h. */
#include "collector/retain/retain_choose.h"

#include "collector/retain/totals.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void choice_release(struct choice *c)
{
	free(c->run);
	runs_release(&c->runs);
	model_release(&c->m);
}

int choice_see(void *choice, const struct run *r, size_t at, size_t n)
{
	struct choice *c = choice;
	struct candidate *run;
	size_t i, segment;

	if (c->n != n) { /* the first one, also if the reading started over */
		free(c->run);
		c->run = calloc(n, sizeof(*c->run));
		c->n = c->run ? n : 0;
		if (!c->run)
			return -ENOMEM;
	}
	run = &c->run[at];
	*run = (struct candidate){r->first_segment, r->last_segment, NULL};
	for (i = 0; i < r->attempts.n && !r->counts.n; i++) {
		segment = r->attempts.v[i]->segment;
		run->first = i && run->first < segment ? run->first : segment;
		run->last = segment > run->last ? segment : run->last;
	}
	return 0;
}

/* When it ended, as far as known if its totals are not. */
static double stop_of(const struct run *r)
{
	return r->totals ? (double)r->totals->stop_ns / 1e9 : r->stop;
}

/* Whether it is over; a run with spans also needs its totals. */
static bool is_settled(const struct choice *c, const struct run *r)
{
	double quiet = r->plain ? (double)RETAIN_SETTLED_PLAIN_NS / 1e9 : TOTALS_SETTLED_SECONDS;

	if (!r->totals && (r->counts.n || r->running))
		return false;
	return !isnan(stop_of(r)) && stop_of(r) + quiet < (double)c->now_ns / 1e9;
}

/* The latest possible time of the segment's last frame. */
static uint64_t segment_end_ns(const struct choice *c, size_t i)
{
	return i + 1 < c->m.segments.n ? c->m.segments.v[i + 1].created_ns : UINT64_MAX;
}

/* The oldest segment that a run needs: with its first record, or with samples shortly before it. */
static size_t first_needed(const struct choice *c, size_t at)
{
	double start = c->runs.v[at].start;
	uint64_t start_ns = start > 0 ? (uint64_t)(start * 1e9) : 0;
	size_t i, first = c->run[at].first;

	for (i = 0; i < first; i++) {
		if (segment_end_ns(c, i) >
		    start_ns - (start_ns > RETAIN_MARGIN_NS ? RETAIN_MARGIN_NS : start_ns))
			return i;
	}
	return first;
}

static void choose_old(struct choice *c)
{
	double oldest = ((double)c->now_ns - (double)c->config->keep_ns) / 1e9;
	size_t i;

	for (i = 0; i < c->runs.n && c->config->keep_ns; i++) {
		if (is_settled(c, &c->runs.v[i]) && stop_of(&c->runs.v[i]) < oldest)
			c->run[i].why = "--keep";
	}
}

/* The first segment that must stay; *by: the run that needs it, if any. */
static size_t first_kept(const struct choice *c, const struct run **by)
{
	size_t i, need, kept = 0;

	*by = NULL;
	while (kept < c->m.segments.n && c->m.segments.v[kept].created_ns < c->current_ns)
		kept++;
	for (i = 0; i < c->runs.n; i++) {
		need = c->run[i].why ? kept : first_needed(c, i);
		if (need < kept) {
			kept = need;
			*by = &c->runs.v[i];
		}
	}
	return kept;
}

/* Drops one run after the other until the rest is small enough. */
static void choose_large(struct choice *c)
{
	uint64_t max = c->config->max_bytes, freed = 0;
	size_t i = 0, k, kept;
	const struct run *by;
	bool newest;

	if (!max)
		return;
	for (;;) {
		kept = first_kept(c, &by);
		for (k = 0, freed = 0; k < kept && c->bytes - freed > max; k++)
			freed += c->m.segments.v[k].bytes;
		if (c->bytes - freed <= max || !by)
			break;
		i = (size_t)(by - c->runs.v);
		newest = i + 1 == c->runs.n;
		if (newest || !is_settled(c, by)) {
			snprintf(c->over, sizeof(((struct retain_result *)0)->over),
				 "the journal has %" PRIu64 " bytes, more than --max-bytes %" PRIu64
				 ": run %s %s, so it is kept whole and the journal keeps growing",
				 c->bytes - freed, max, by->id,
				 newest ? "is the newest" : "is in progress");
			break;
		}
		c->run[i].why = "--max-bytes";
	}
	c->first_kept = k;
}

void choose_runs(struct choice *c)
{
	size_t i;

	for (i = 0; i < c->m.segments.n; i++)
		c->bytes += c->m.segments.v[i].bytes;
	choose_old(c);
	choose_large(c);
}

/* Among the segments that no run needs, drops those that hold dropped runs, are too old or too
 * many. */
void choose_segments(struct choice *c)
{
	const struct run *by;
	size_t i, end, kept = first_kept(c, &by);
	uint64_t oldest = c->now_ns - c->config->keep_ns;

	if (c->first_kept > kept)
		c->first_kept = kept;
	for (i = 0; i < c->runs.n; i++) {
		end = c->run[i].last + 1 < kept ? c->run[i].last + 1 : kept;
		if (c->run[i].why && end > c->first_kept)
			c->first_kept = end;
	}
	while (c->config->keep_ns && c->first_kept < kept &&
	       segment_end_ns(c, c->first_kept) < oldest)
		c->first_kept++;
}
