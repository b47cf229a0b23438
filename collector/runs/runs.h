/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * runs.h - attempts grouped into runs, and what counts in them.
 *
 * Agents send raw facts; the grouping is made here, so it can be improved over old journals:
 * - a span that holds both coffea's preprocessing and its chunks was opened by the user: one run;
 * - a span with chunks, and the last earlier unclaimed span with preprocessing only whose
 *   (dataset, file) set covers the chunks', are one run, unless the user opened that span; without
 *   such a span the metadata was cached; a span before it that only carries the processor to the
 * workers (lambda tasks) is part of it;
 * - every other span is a run of its own;
 * - coffea without Dask: runs_plain.h;
 * - a task is in the run that submitted it first: another client's equal keys are the same task to
 *   Dask. Who takes its result names that run (others.sources);
 * - tasks without a span (older Dask): a run ends where nothing ran for RUNS_GAP_SECONDS, or where
 *   preprocessing begins after chunks.
 *
 * Of each key the last ok attempt of the run is counted. The others have a reason: killed, lost,
 * erred (nothing came after it), retried (something did), recomputed (another ok one came later),
 * stolen (the same at the same time on another worker), shutdown (killed or lost, nothing came
 * after, and its worker was closed by Dask or by the end of the process that had started it). A
 * running attempt has none yet.
 *
 * A run's id is its start and a hash of its first span: 20261121-101530-ab12. It sorts by time and
 * stays as the run grows. The model must be closed and outlive the runs.
 */
#ifndef CREMA_COLLECTOR_RUNS_RUNS_H
#define CREMA_COLLECTOR_RUNS_RUNS_H

#include <math.h>

#include "collector/model/model.h"

#define RUNS_GAP_SECONDS 10.0
#define SCATTER_SECONDS 60.0
#define RUNS_NEAR_SECONDS 60.0
#define RUN_ID_BYTES 24
#define RUN_BLOCK_SECONDS 1.0
#define RUN_OTHERS 3

enum run_kind { RUN_COFFEA, RUN_PREPROCESSING, RUN_OTHER };

/* Where attempts without Dask ran: rows of files and codecs belong to a run by both. */
struct run_place {
	const struct worker *worker;
	const char *span;
};

struct run {
	struct model *model;
	bool plain; /* without Dask (runs_plain.h) */
	ARRAY(struct run_place) places;
	char id[RUN_ID_BYTES];
	const char *name; /* of all workers that had its tasks; NULL: none, or several */
	enum run_kind kind;
	const char *spans[3]; /* processing, preprocessing, the processor's way; NULL: none */
	struct texts more;    /* further spans or parts of spans (span_part.h) */
	const char *first_span;
	struct attempts attempts;	/* by begin */
	ARRAY(struct worker *) workers; /* alive while it ran */
	double start, stop;		/* first and last task edge, UTC; NAN without a clock */
	double from, to; /* what its averages are over: the client's block, else start to stop */
	double wall;	 /* exactly between them, seconds */
	size_t running;
	size_t again;  /* attempts that ended well and that a later call with equal keys had done
			  again */
	size_t number; /* as runs_build() made it, before they are sorted */
	struct run_others {
		size_t n; /* other runs that "last" may have meant; see runs_tell_others() */
		char ids[RUN_OTHERS][RUN_ID_BYTES];
		size_t sources; /* runs that did tasks whose results it takes; a lower bound */
		char source_ids[RUN_OTHERS][RUN_ID_BYTES];
		bool later;		    /* these began after it, which has tasks of them */
		char lent_to[RUN_ID_BYTES]; /* the run that has tasks of it so; "": none */
		size_t concurrent;	    /* for run_concurrent() */
		double last_until, next_start;
	} others;
	/* By a survey (selection.h): its records, where they lie, and when the last one ended. */
	ARRAY(struct span_count) counts;
	size_t first_segment, last_segment;
	double until;
	const struct dropped_run *totals; /* known without its records; NULL: not (run_totals.h) */
};

struct runs {
	struct run *v; /* by start */
	size_t n, cap;
};

/* Groups, counts and numbers the chunks of all runs: 0 or -ENOMEM. The model is not to be fed any
 * more. */
int runs_build(struct runs *runs, struct model *m);
void runs_release(struct runs *runs);
/*
 * NULL or "last": the one that began last, but none of kind "other" that began while one of coffea
 * was under way or RUNS_NEAR_SECONDS after it; else an id or a name, or any part of one if only one
 * run fits; or the id of one of its spans. NULL if there is none.
 */
struct run *runs_find(const struct runs *runs, const char *which);
/* The runs that a part of an id or name fits: all are counted, the last ones named. What `fits`
 * holds of another name stays. */
void runs_fit(const struct runs *runs, const char *which, struct run_fits *fits);
/* Whether it asks for the last run. */
bool runs_means_last(const char *which);
/* Says of a run that was found as the last one which others were under way with it or began after
 * it; of one of kind "other" also those of that kind that RUNS_GAP_SECONDS or less lie between. */
void runs_tell_others(const struct runs *runs, struct run *r);

/* What people call a kind of task: coffea's preprocessing and the task that sends its processor are
 * "preprocess" and "send processor"; of any other the prefix. */
const char *run_prefix_shown(const struct run *r, const char *prefix);
/* Calls put() for each prefix of the run that people call otherwise. */
void run_prefixes_shown(const struct run *r,
			void (*put)(void *arg, const char *prefix, const char *shown), void *arg);
/* A task's key that begins with that name: "preprocess-1f2e..."; `out` holds it if it differs. */
#define KEY_SHOWN_BYTES 160
const char *run_key_shown(const struct run *r, const struct attempt *a, char out[KEY_SHOWN_BYTES]);

/* How many other runs had tasks on its workers while it had, or in the client's block: what Dask
 * and the kernel tell of a whole worker is theirs, too. Not for runs without Dask. */
size_t run_concurrent(const struct run *r);
/* Orders hashes of keys, for qsort() and bsearch(). */
int run_key_order(const void *a, const void *b);

/* Which other runs and calls are in its numbers, or its tasks in theirs: `say` gets each sentence.
 */
void run_company_say(const struct run *r, void (*say)(void *arg, const char *sentence), void *arg);
/* The same as the array "company" of the object that is open. */
struct json;
void run_company_json(const struct run *r, struct json *j);
/* "a, b, ...": n ids, of which RUN_OTHERS are there. Returns `line`. */
const char *run_ids_text(char *line, size_t size, const char ids[][RUN_ID_BYTES], size_t n);

/* To order by times: unknown ones come first. */
static inline double time_or_0(double t)
{
	return isnan(t) ? 0 : t;
}

/*
 * The client's block, UTC by the collector's clock: averages are over it, and workers that were
 * alive in it are the run's. Its ends may lie RUN_BLOCK_SECONDS inside the tasks' edges, as clocks
 * differ; where they do so by more, or a time is unknown, nothing changes: false. -ENOMEM sticks in
 * the model.
 */
bool run_take_block(struct run *r, double from, double to);
/* Whether averages are over the client's block. */
static inline bool run_has_block(const struct run *r)
{
	return r->from < r->start || r->to > r->stop;
}

bool attempt_is_chunk(const struct attempt *a);
/* When the last of its attempts ended as far as a survey (selection.h) knows, UTC; 0: it does not.
 */
double run_surveyed_until(struct selection *s, const struct run *r);
/* All names of its spans, as they are on the wire; some of those below run_span_count() are NULL.
 */
size_t run_span_count(const struct run *r);
const char *run_span(const struct run *r, size_t i);
bool run_has_span(const struct run *r, const char *span);
/* By Dask's id of it, interned. */
bool run_has_dask_span(const struct run *r, const char *span);
/* Dask's own numbers are by span and prefix: whether these are the run's; SHARED: another run had
 * tasks of that prefix in that span as well. */
enum run_digest { DIGEST_OTHER, DIGEST_OWN, DIGEST_SHARED };
/* Did the worker tell Dask's digests of the attempt's span since it ended? */
bool attempt_has_digests(const struct run *r, const struct attempt *a);
enum run_digest run_digest(const struct run *r, const char *span, const char *prefix);
/* Whether a row of a file, codec or server belongs to the run: by its span, NULL if it has none;
 * without Dask by its worker, too, if that is not NULL. */
bool run_has_row(const struct run *r, const struct worker *w, const char *span);
/* Entries the attempt processed: coffea's word, else its range if it ended well. */
struct value attempt_events(const struct attempt *a);
/* "coffea", "preprocessing", "other" */
const char *run_kind_name(const struct run *r);
const char *attempt_state_name(const struct attempt *a);

/* When its last attempt ended; a survey has not seen all of them. */
double run_until(const struct run *r);
/* Parts of runs_build(): sets what of `others` is not about the last run. Sorted; before that. */
struct task_spans;
int runs_tell_company(struct runs *runs);
void runs_tell_sources(struct runs *runs, const struct task_spans *spans);
/* Parts of runs_build(): a worker of its attempts whose scheduler is known, or NULL; and whether a
 * worker is one of the run's, by that one. */
const struct worker *run_scheduled(const struct run *r);
bool run_has_worker(const struct run *r, const struct worker *w, const struct worker *scheduled);
/* Its times, id, workers and what counts, from its attempts; again if they are others now. */
int run_settle(struct run *r);
/* In the order of their begin, worker and number. */
void attempts_sort(struct attempt **v, size_t n);
/* Sets counted, waste_reason and chunk_id: attempts are in the order of their begin. */
int run_count_attempts(struct run *r);
/* How many spans the attempts have: 0 or -ENOMEM. */
int runs_count_spans(const struct model *m, size_t *n);

#endif
