/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * runs.h - attempts grouped into runs, and what counts in them.
 *
 * Agents send raw facts. The grouping is done here, so that it can be improved for old journals:
 * - a span that holds both coffea's preprocessing and its chunks was opened by the user: one run;
 * - a span with chunks, and the last earlier unclaimed span with preprocessing only whose
 *   (dataset, file) set covers the chunks', are one run, unless the user opened that span; without
 *   such a span the metadata was cached; a span before it that only sends the processor to the
 *   workers (lambda tasks) is part of it;
 * - every other span is a separate run;
 * - coffea without Dask: runs_plain.h;
 * - a task is in the run that submitted it first: another client's equal keys are the same task to
 *   Dask. A run that takes its result names that run (others.sources);
 * - tasks without a span (older Dask): a run ends when nothing ran for RUNS_GAP_SECONDS, or when
 *   preprocessing begins after chunks.
 *
 * Of each key the last ok attempt of the run counts. The others have a waste reason: killed, lost,
 * erred (no attempt followed), retried (one did), recomputed (a later one was ok, too), stolen
 * (another ran at the same time on another worker), shutdown (killed or lost, no attempt followed,
 * and the worker was closed by Dask or by the end of the process that had started it). A running
 * attempt has none yet.
 *
 * A run's id is its start and a hash of its first span: 20261121-101530-ab12. It sorts by time and
 * does not change as the run grows. The model must be closed and outlive the runs.
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

/* Where attempts without Dask ran: rows of files and codecs are matched to a run by both
 * members. */
struct run_place {
	const struct worker *worker;
	const char *span;
};

struct run {
	struct model *model;
	bool plain; /* without Dask (runs_plain.h) */
	ARRAY(struct run_place) places;
	char id[RUN_ID_BYTES];
	const char *name; /* of all workers with its tasks; NULL: none, or several */
	enum run_kind kind;
	const char *spans[3]; /* processing, preprocessing, sending the processor; NULL: none */
	struct texts more;    /* further spans or parts of spans (span_part.h) */
	const char *first_span;
	struct attempts attempts;	/* sorted by begin */
	ARRAY(struct worker *) workers; /* alive while it ran */
	double start, stop; /* first begin and last end of a task, UTC; NAN without a clock */
	double from, to; /* the time that averages cover: the client's block, else start to stop */
	double wall;	 /* exact difference, seconds */
	size_t running;
	size_t again;  /* successful attempts that a later call with equal keys repeated */
	size_t number; /* index in the order of runs_build(), before sorting */
	struct run_others {
		size_t n; /* other runs that "last" may have meant; see runs_tell_others() */
		char ids[RUN_OTHERS][RUN_ID_BYTES];
		size_t sources; /* runs whose results it takes; a lower bound */
		char source_ids[RUN_OTHERS][RUN_ID_BYTES];
		bool later;		    /* these began after it, but it has tasks of them */
		char lent_to[RUN_ID_BYTES]; /* the earlier run with tasks of it; "": none */
		size_t concurrent;	    /* for run_concurrent() */
		double last_until, next_start;
	} others;
	/* From a survey (selection.h): its records, where they are, and when the last one ended. */
	ARRAY(struct span_count) counts;
	size_t first_segment, last_segment;
	double until;
	const struct dropped_run *totals; /* known without its records (run_totals.h), or NULL */
};

struct runs {
	struct run *v; /* sorted by start */
	size_t n, cap;
};

/* Groups all attempts into runs, and counts and numbers the chunks: 0 or -ENOMEM. Do not feed the
 * model afterwards. */
int runs_build(struct runs *runs, struct model *m);
void runs_release(struct runs *runs);
/*
 * NULL or "last": the run that began last, except those of kind "other" that began during a run of
 * coffea or up to RUNS_NEAR_SECONDS after it. Otherwise an id or a name, a part of one if only one
 * run matches, or the id of one of its spans. NULL if there is none.
 */
struct run *runs_find(const struct runs *runs, const char *which);
/* Collects the runs whose id or name contains `which`: all are counted, the last ones listed. Does
 * nothing if `fits` already has a name. */
void runs_fit(const struct runs *runs, const char *which, struct run_fits *fits);
/* Whether it means the last run. */
bool runs_means_last(const char *which);
/* For a run that was found as the last one: lists the others that were running when it began or
 * began after it. For one of kind "other", also earlier ones of that kind with gaps of at most
 * RUNS_GAP_SECONDS. */
void runs_tell_others(const struct runs *runs, struct run *r);

/* The displayed name of a kind of task: "preprocess" and "send processor" for coffea's
 * preprocessing and the task that sends its processor; otherwise the prefix. */
const char *run_prefix_shown(const struct run *r, const char *prefix);
/* Calls put() for each prefix of the run that has another displayed name. */
void run_prefixes_shown(const struct run *r,
			void (*put)(void *arg, const char *prefix, const char *shown), void *arg);
/* A task's key with the displayed name at its beginning: "preprocess-1f2e...". It is stored in
 * `out` if it differs. */
#define KEY_SHOWN_BYTES 160
const char *run_key_shown(const struct run *r, const struct attempt *a, char out[KEY_SHOWN_BYTES]);

/* How many other runs had tasks on its workers at the same time, or within the client's block: what
 * Dask and the kernel report about a whole worker includes them. Not for runs without Dask. */
size_t run_concurrent(const struct run *r);
/* Orders hashes of keys, for qsort() and bsearch(). */
int run_key_order(const void *a, const void *b);

/* Which other runs and calls its numbers include, or which include its tasks; `say` gets each
 * sentence. */
void run_company_say(const struct run *r, void (*say)(void *arg, const char *sentence), void *arg);
/* The same as the array "company" of the open object. */
struct json;
void run_company_json(const struct run *r, struct json *j);
/* "a, b, ...": n ids, of which RUN_OTHERS are listed. Returns `line`. */
const char *run_ids_text(char *line, size_t size, const char ids[][RUN_ID_BYTES], size_t n);

/* For sorting by time: unknown times come first. */
static inline double time_or_0(double t)
{
	return isnan(t) ? 0 : t;
}

/*
 * Sets the client's block, UTC by the collector's clock. Averages are over it, and workers that
 * were alive in it are the run's. Clocks differ, so its ends may be up to RUN_BLOCK_SECONDS inside
 * the time of the tasks. If they are further inside, or a time is unknown, nothing changes: false.
 * -ENOMEM sticks in the model.
 */
bool run_take_block(struct run *r, double from, double to);
/* Whether averages are over the client's block. */
static inline bool run_has_block(const struct run *r)
{
	return r->from < r->start || r->to > r->stop;
}

bool attempt_is_chunk(const struct attempt *a);
/* When the last of its attempts ended according to a survey (selection.h), UTC; 0: unknown. */
double run_surveyed_until(struct selection *s, const struct run *r);
/* All names of its spans as on the wire; some of those below run_span_count() are NULL. */
size_t run_span_count(const struct run *r);
const char *run_span(const struct run *r, size_t i);
bool run_has_span(const struct run *r, const char *span);
/* By its Dask id, interned. */
bool run_has_dask_span(const struct run *r, const char *span);
/* Dask's own numbers are per span and prefix. OWN: they are this run's; SHARED: another run had
 * tasks of that prefix in that span as well. */
enum run_digest { DIGEST_OTHER, DIGEST_OWN, DIGEST_SHARED };
/* Whether the worker has sent Dask's digests of the attempt's span since the attempt ended. */
bool attempt_has_digests(const struct run *r, const struct attempt *a);
enum run_digest run_digest(const struct run *r, const char *span, const char *prefix);
/* Whether a row of a file, codec or server belongs to the run, by its span (NULL: it has none);
 * without Dask also by its worker if that is not NULL. */
bool run_has_row(const struct run *r, const struct worker *w, const char *span);
/* Entries that the attempt processed: coffea's number, else its range if it ended well. */
struct value attempt_events(const struct attempt *a);
/* "coffea", "preprocessing", "other" */
const char *run_kind_name(const struct run *r);
const char *attempt_state_name(const struct attempt *a);

/* When its last attempt ended, even if a survey has not seen all of them. */
double run_until(const struct run *r);
/* Parts of runs_build(): set the members of `others` that do not concern the last run. The first
 * runs after sorting, the second before. */
struct task_spans;
int runs_tell_company(struct runs *runs);
void runs_tell_sources(struct runs *runs, const struct task_spans *spans);
/* Parts of runs_build(): a worker of its attempts whose scheduler is known, or NULL; and whether a
 * worker belongs to the run, judged by that one. */
const struct worker *run_scheduled(const struct run *r);
bool run_has_worker(const struct run *r, const struct worker *w, const struct worker *scheduled);
/* Sets its times, id, workers and what counts from its attempts; call it again when they change. */
int run_settle(struct run *r);
/* Sorts by begin, worker and number. */
void attempts_sort(struct attempt **v, size_t n);
/* Sets counted, waste_reason and chunk_id; attempts must be sorted by begin. */
int run_count_attempts(struct run *r);
/* Counts the spans that attempts have: 0 or -ENOMEM. */
int runs_count_spans(const struct model *m, size_t *n);

#endif
