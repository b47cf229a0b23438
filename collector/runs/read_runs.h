/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * read_runs.h - reads a long journal in the memory that one run needs, by reading it twice.
 *
 * A collector runs for weeks; a report covers one run. The first pass, the survey, reads all tasks.
 * Of each span it keeps only the attempts that runs_build() needs for grouping: the earliest one of
 * each worker, and one for each dataset, file and kind of task. So its runs have the ids and spans
 * that all attempts would give. The second pass keeps the attempts and rows of the selected runs'
 * spans, and samples around them. Tasks without a span, and those without Dask, are grouped by
 * time; both passes keep them. model/selection.h is the filter of each pass.
 *
 * runs_read_each() returns all runs one after the other, from their totals (run_totals.h) if these
 * suffice. Otherwise it holds a few runs at a time in memory: after the survey it reads the files
 * with records of these runs again. It keeps when attempts ran, how they ended and what counts
 * (selection_slim()), not their numbers.
 *
 * The survey reads a segment's footer (model/footer.h) if there is one. The second pass opens them
 * only if they have records or rows of the selected spans, or samples within the runs' times, and
 * reads only the blocks with them (model/footer_blocks.h). The report is the same with and without
 * footers, and the same as for a journal that is read whole, except for two unknowns: when a
 * worker's first task began, and the differences between two of a worker's probes (transfer_*,
 * gc_seconds, threads) if no probe is within a minute of the run.
 */
#ifndef CREMA_COLLECTOR_RUNS_READ_RUNS_H
#define CREMA_COLLECTOR_RUNS_READ_RUNS_H

#include "collector/model/selection.h"
#include "collector/runs/runs.h"

/* Smaller journals are read once, completely. */
#define RUNS_WHOLE_BYTES (UINT64_C(192) << 20)
#define RUNS_TRIES 10 /* segments are removed at most every few seconds */

/* What to read, and the time for model_close(). Journals below whole_bytes (0: RUNS_WHOLE_BYTES)
 * are read completely. */
struct runs_source {
	const char *dir;
	const char *const *more; /* journals to read with it; NULL-terminated, or NULL */
	uint64_t now_ns, whole_bytes;
	uint64_t block_from_ns, block_to_ns; /* client's block; 0: first to last task */
	bool by_totals;	  /* runs_read_each(): runs whose totals are known come without attempts, */
	bool survey_only; /* and so do all others, unless the survey has all of their attempts */
	bool pass_over;	  /* of several journals those that cannot be read (model_read_dirs()) */
};

/*
 * found[i] gets the run that runs_find() finds among all for which[i] (NULL: "last"), or NULL.
 * `runs` may hold others as well, possibly incomplete. Returns the number of files or -errno.
 * Release `runs` and `m`, both fresh, in either case.
 */
int runs_read(struct model *m, struct runs *runs, const struct runs_source *source,
	      const char *const *which, struct run **found, size_t n);

/*
 * Reads all runs of a journal. see() gets each once, with its attempts, which are freed afterwards;
 * `at` is its index in `runs`, and `n` the final number of runs. If the collector drops segments
 * meanwhile, the reading starts over. Both are as model_close() and runs_build() leave them, except
 * for attempts and rows. Large journals are read in batches of runs that take no more memory than
 * whole_bytes, or of one run. If a file then has less than before, everything starts over, up to
 * RUNS_TRIES times. Returns the number of files, -errno, or the result of see() if it was not 0.
 * Release `runs` and `m` in either case.
 */
typedef int (*run_visitor)(void *arg, const struct run *r, size_t at, size_t n);
int runs_read_each(struct model *m, struct runs *runs, const struct runs_source *source,
		   run_visitor see, void *arg);

/* Shared by both: true if the journal is larger than whole_bytes. */
bool source_is_long(const struct runs_source *source);
/* Discards everything read so far. */
void runs_start_over(struct model *m, struct runs *runs);
/* Reads all files and builds the runs: the number of files or -errno. */
int runs_survey(struct model *m, struct runs *runs, const struct runs_source *source);

#endif
