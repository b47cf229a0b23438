/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * read_runs.h - reads a long journal in the memory that one run needs, by reading it twice.
 *
 * A collector runs for weeks; a report covers one run. The first pass, the survey, reads all tasks
 * and keeps only the attempts of each span that runs_build() groups by: the earliest one of each
 * worker, and one for each dataset, file and kind of task. So its runs have the ids and spans that
 * all attempts would give. The second pass keeps the attempts and rows of the selected runs' spans,
 * and samples around them. Tasks without a span, and those without Dask, are grouped by time; both
 * passes keep them. model/selection.h is the filter of each pass.
 *
 * runs_read_each() returns all runs one after the other: from their totals (run_totals.h) if these
 * suffice, otherwise a few at a time in memory: after the survey, the files with records of some
 * runs are read again for these runs only. It keeps when attempts ran, how they ended and what
 * counts (selection_slim()), not their numbers.
 *
 * Segments with a footer (model/footer.h) are surveyed by it. The second pass opens them only if
 * they have records or rows of the selected spans, or samples within the runs' times. The report is
 * the same either way, and the same as of a journal that is read whole, but for two things: when a
 * worker's first task began, and what lies between two of a worker's probes (transfer_*,
 * gc_seconds, threads) when none of them is within a minute of the run, are then unknown.
 */
#ifndef CREMA_COLLECTOR_RUNS_READ_RUNS_H
#define CREMA_COLLECTOR_RUNS_READ_RUNS_H

#include "collector/model/selection.h"
#include "collector/runs/runs.h"

/* Journals below this are read once, whole. */
#define RUNS_WHOLE_BYTES (UINT64_C(192) << 20)
#define RUNS_TRIES 10 /* segments are removed at most every few seconds */

/* What is read, and when: for model_close(). Journals below whole_bytes (0: RUNS_WHOLE_BYTES) are
 * read whole. */
struct runs_source {
	const char *dir;
	const char *const *more; /* read with it as one; NULL at the end, or NULL: none */
	uint64_t now_ns, whole_bytes;
	uint64_t block_from_ns, block_to_ns; /* the client's block, 0: as long as the tasks */
	bool by_totals;	  /* runs_read_each(): runs whose totals are known come without attempts */
	bool survey_only; /* and all others, but those that the survey has all attempts of */
};

/*
 * found[i] gets the run that which[i] names among all as runs_find() does ("last" if it is NULL),
 * NULL if there is none. `runs` may hold others as well, not always whole. The number of files or
 * -errno; `runs` and `m`, both fresh, are to be released in either case.
 */
int runs_read(struct model *m, struct runs *runs, const struct runs_source *source,
	      const char *const *which, struct run **found, size_t n);

/*
 * All runs of a journal: see() gets each once, with its attempts, which are gone afterwards; `at`
 * is its place in `runs`, and `n` of them there will be. If the collector drops segments meanwhile
 * it starts over. Both are as model_close() and runs_build() leave them, but for attempts and
 * rows. Large journals are read in batches of runs that take no more memory than whole_bytes, or of
 * one run; if a file then gives less than it did before, everything starts over, up to
 * RUNS_TRIES times. The number of files, -errno, or what see() returned if it was not 0;
 * `runs` and `m` are to be released in either case.
 */
typedef int (*run_visitor)(void *arg, const struct run *r, size_t at, size_t n);
int runs_read_each(struct model *m, struct runs *runs, const struct runs_source *source,
		   run_visitor see, void *arg);

/* Shared by both. True if the journal is larger than whole_bytes. */
bool source_is_long(const struct runs_source *source);
/* Discards everything read so far. */
void runs_start_over(struct model *m, struct runs *runs);
/* Reads all files and builds the runs: the number of files or -errno. */
int runs_survey(struct model *m, struct runs *runs, const struct runs_source *source);

#endif
