/* SPDX-License-Identifier: BSD-3-Clause */
/* read_each.c - reads all runs one after the other, in batches that fit in memory. */
#include "collector/runs/read_runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/runs/run_totals.h"
#include "common/framefile.h"

/* The most memory of a slim attempt, with its entries in the model and in its run. */
#define SLIM_BYTES 320u

struct each {
	struct model *m;
	struct runs *runs;
	struct selection s;
	uint64_t batch_bytes;
	int unread; /* -errno of the last file that only the survey could read */
	bool by_totals, survey_only;
	run_visitor see;
	void *arg;
};

/* Needs no more reading: the survey has all attempts of runs that do not have spans to
 * themselves. */
static bool is_complete(const struct each *e, const struct run *r)
{
	return r->plain || !r->first_span || e->survey_only || (e->by_totals && r->totals);
}

static void forget_attempts(struct run *r)
{
	free(r->attempts.v);
	free(r->workers.v);
	memset(&r->attempts, 0, sizeof(r->attempts));
	memset(&r->workers, 0, sizeof(r->workers));
}

/* Marks the run's spans as part of this batch, and its files as to be read. */
static void join_batch(struct each *e, size_t at, bool *wanted)
{
	const struct run *r = &e->runs->v[at];
	struct seen_span *seen;
	size_t i, k;

	for (i = 0; i < run_span_count(r); i++) {
		seen = run_span(r, i) ? selection_span(&e->s, run_span(r, i)) : NULL;
		if (!seen)
			continue;
		seen->run = at;
		seen->batch = e->s.batch;
		for (k = seen->first_file; k <= seen->last_file; k++)
			wanted[k] = true;
	}
}

static int read_again(struct each *e, const bool *wanted)
{
	struct framefile_stats stats;
	const struct selection_file *f;
	size_t i;
	int rc = 0;

	for (i = 0; i < e->s.files.n && !rc; i++) {
		f = &e->s.files.v[i];
		if (!f->frames || (!wanted[i] && !f->nameless))
			continue;
		memset(&stats, 0, sizeof(stats));
		e->m->segment = f->segment;
		rc = framefile_read(f->path, model_feed_tasks, e->m, &stats);
		if (rc == -ENOENT)
			return -ESTALE;
		if (rc == -ENOMEM || e->m->error)
			return e->m->error ? e->m->error : rc;
		if (stats.frames < f->frames) { /* runs would lack them without notice */
			e->unread = rc ? rc : -EIO;
			return -ESTALE;
		}
		rc = 0; /* files that were unreadable the first time are reported already */
	}
	return rc;
}

static int give_attempts(struct each *e)
{
	const struct seen_span *seen;
	struct attempt **at, *a;
	size_t i;

	model_close_attempts(e->m);
	for (i = 0; i < e->m->attempts.n; i++) {
		a = e->m->attempts.v[i];
		seen = a->span ? selection_span(&e->s, a->span) : NULL;
		if (!seen || seen->batch != e->s.batch)
			continue;
		at = ARRAY_NEW(&e->runs->v[seen->run].attempts);
		if (!at)
			return -ENOMEM;
		*at = a;
	}
	return 0;
}

static int see_batch(struct each *e, size_t from, size_t to)
{
	struct run *r;
	size_t i;
	int rc = give_attempts(e);

	for (i = from; i < to && !rc; i++) {
		r = &e->runs->v[i];
		if (is_complete(e, r))
			continue;
		if (!r->attempts.n)
			return -ESTALE; /* segments were just removed */
		rc = run_settle(r);
		if (!rc)
			rc = e->see(e->arg, r, i, e->runs->n);
		forget_attempts(r);
	}
	model_drop_attempts(e->m);
	return rc;
}

/* Reads runs from this one on, as many as fit; *to: the one after the last. */
static int read_batch(struct each *e, size_t from, size_t *to)
{
	bool *wanted = calloc(e->s.files.n + 1, sizeof(*wanted));
	uint64_t bytes = 0, more;
	size_t i;
	int rc;

	if (!wanted)
		return -ENOMEM;
	e->s.batch++;
	for (i = from; i < e->runs->n; i++) {
		if (is_complete(e, &e->runs->v[i]))
			continue;
		more = run_counted(&e->runs->v[i]) * SLIM_BYTES;
		if (bytes && bytes + more > e->batch_bytes)
			break;
		bytes += more;
		join_batch(e, i, wanted);
	}
	*to = i;
	rc = bytes ? read_again(e, wanted) : 0;
	free(wanted);
	return rc ? rc : see_batch(e, from, i);
}

static int see_surveyed(struct each *e)
{
	struct run *r;
	size_t i;
	int rc = 0;

	for (i = 0; i < e->runs->n && !rc; i++) {
		r = &e->runs->v[i];
		if (is_complete(e, r))
			rc = e->see(e->arg, r, i, e->runs->n);
		forget_attempts(r);
	}
	model_drop_attempts(e->m);
	return rc;
}

static int read_once(struct each *e, const struct runs_source *source, bool whole)
{
	size_t i = 0;
	int n, rc;

	e->m->selection = whole ? NULL : &e->s;
	e->s.pass = SELECTION_SURVEY;
	n = runs_survey(e->m, e->runs, source);
	rc = n < 0 ? n : 0;
	if (!whole && !rc && (e->by_totals || e->survey_only))
		rc = run_totals_read(e->m, source->dir, source->more);
	if (!whole && !rc)
		rc = run_totals_find(&e->s, e->runs);
	for (i = 0; whole && i < e->runs->n && !rc; i++)
		rc = e->see(e->arg, &e->runs->v[i], i, e->runs->n);
	if (!whole && !rc) {
		rc = see_surveyed(e);
		e->s.pass = SELECTION_BATCH;
		for (i = 0; i < e->runs->n && !rc;)
			rc = read_batch(e, i, &i);
	}
	e->m->selection = NULL;
	return rc ? rc : n;
}

int runs_read_each(struct model *m, struct runs *runs, const struct runs_source *source,
		   run_visitor see, void *arg)
{
	struct each e = {.m = m,
			 .runs = runs,
			 .by_totals = source->by_totals,
			 .survey_only = source->survey_only,
			 .see = see,
			 .arg = arg};
	bool whole = !source->survey_only && !source_is_long(source);
	int rc, tries = RUNS_TRIES;

	e.batch_bytes = source->whole_bytes ? source->whole_bytes : RUNS_WHOLE_BYTES;
	while ((rc = read_once(&e, source, whole)) == -ESTALE && --tries) {
		runs_start_over(m, runs);
		selection_restart(&e.s);
		memset(&e.s, 0, sizeof(e.s));
	}
	selection_restart(&e.s);
	return rc == -ESTALE && e.unread ? e.unread : rc;
}
