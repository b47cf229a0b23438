/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * selection.h - a long journal in the memory that one run takes: it is read twice.
 *
 * A collector runs for weeks; a report is of one run. The survey looks at all tasks and keeps, of
 * each span, just the attempts that runs_build() groups by: of each worker the earliest one, and
 * one for each dataset, file and kind of task. So its runs have the ids and spans that all attempts
 * would give. The second reading keeps what belongs to the wanted runs: attempts and rows of their
 * spans, samples around them. Tasks without a span, and those without Dask, are grouped by their
 * times and kept in both.
 *
 * model_read_each() gives all runs one after the other, a few at a time in memory: after the survey
 * the files that hold records of some runs are read again for these alone. Of attempts it knows
 * what says when they ran, how they ended and what counts (selection_slim()), not their numbers.
 *
 * What is of a worker's whole life (totals, clocks, losses, its end) is read in full both times;
 * only when its first task began and how long it had tasks is unknown then.
 */
#ifndef COLLECTOR_MODEL_SELECTION_H
#define COLLECTOR_MODEL_SELECTION_H

#include "collector/model/runs.h"

/* Journals below this are read once, whole. */
#define SELECTION_BYTES (UINT64_C(192) << 20)
/* Samples are told by the worker's own clock, before the collector's is known. */
#define SELECTION_MARGIN_NS UINT64_C(900000000000)

enum selection_pass { SELECTION_SURVEY, SELECTION_RUNS, SELECTION_BATCH };

struct selection_file {
	char *path;
	uint16_t segment;
	bool nameless; /* has tasks without a span */
};

/* What the survey knows of a span. */
struct seen_span {
	uint64_t span;		      /* the name's address */
	uint64_t end_ns;	      /* roughly */
	uint64_t begun, ended;	      /* records */
	size_t first_file, last_file; /* that hold some */
	size_t run, batch;	      /* batch 0: none */
};

struct selection {
	enum selection_pass pass;
	struct arena arena; /* of the survey's tables */
	struct table earliest, kept, seen;
	ARRAY(struct selection_file) files; /* as they were read */
	size_t batch;			    /* that is read now */
	ARRAY(char *) spans;		    /* that are wanted */
	uint64_t from_ns, to_ns;	    /* UTC */
};

/*
 * As model_read_dir(), for the runs that `which` names as runs_find() does ("last" if it is NULL);
 * `whole_bytes`: journals below are read whole, 0 = SELECTION_BYTES. Other runs may be in the
 * model as well, not always whole.
 */
int model_read_runs(struct model *m, const char *dir, const char *const *which, size_t n,
		    uint64_t whole_bytes);

/*
 * All runs of a journal: see() gets each once, with its attempts, which are gone afterwards; `at`
 * is its place in `runs`, and `n` of them there will be. If the collector drops segments meanwhile
 * it is begun anew. Both are as model_close() and runs_build() leave them, but for attempts and
 * rows. Journals below `whole_bytes` (0 = SELECTION_BYTES) are read whole, larger ones in batches
 * of runs that take no more memory than that, or of one run. The number of files, -errno, or what
 * see() returned if it was not 0; `runs` and `m` are to be released in either case.
 */
typedef int (*run_visitor)(void *arg, const struct run *r, size_t at, size_t n);
int model_read_each(struct model *m, struct runs *runs, const char *dir, uint64_t now_ns,
		    uint64_t whole_bytes, run_visitor see, void *arg);

/* The bytes of all frame files of the directory. */
uint64_t model_bytes(const char *dir);

/* The reading is begun anew. */
void selection_restart(struct selection *s);
/* NULL: the span has no records of its own there. */
struct seen_span *selection_span(struct selection *s, const char *span);
/* Part of model_read_dir(): the next file. 0 or -ENOMEM. */
int selection_file(struct selection *s, const char *path, uint16_t segment);

/* Parts of model_feed(): whether the record, the sample of that time or the message is to be
 * kept. `known`: the attempt is. */
bool selection_takes_task(struct model *m, struct worker *w, const struct task_record *r,
			  bool known);
/* Leaves what runs are made of and counted by; `s` may be NULL: then everything. */
void selection_slim(const struct selection *s, struct task_record *r);
bool selection_takes_time(const struct model *m, const struct worker *w, uint64_t boot_ns);
bool selection_takes_message(const struct model *m, struct worker *w, uint64_t type,
			     const msgpack_object *map);

#endif
