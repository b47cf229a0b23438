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
 * What is of a worker's whole life (totals, clocks, losses, its end) is read in full both times;
 * only when its first task began and how long it had tasks is unknown then.
 */
#ifndef COLLECTOR_MODEL_SELECTION_H
#define COLLECTOR_MODEL_SELECTION_H

#include "collector/model/model.h"

/* Journals below this are read once, whole. */
#define SELECTION_BYTES (UINT64_C(192) << 20)
/* Samples are told by the worker's own clock, before the collector's is known. */
#define SELECTION_MARGIN_NS UINT64_C(900000000000)

enum selection_pass { SELECTION_SURVEY, SELECTION_RUNS };

struct selection {
	enum selection_pass pass;
	struct arena arena; /* of the survey's tables */
	struct table earliest, kept, ends;
	ARRAY(char *) spans;	 /* that are wanted */
	uint64_t from_ns, to_ns; /* UTC */
};

/*
 * As model_read_dir(), for the runs that `which` names as runs_find() does ("last" if it is NULL);
 * `whole_bytes`: journals below are read whole, 0 = SELECTION_BYTES. Other runs may be in the
 * model as well, not always whole.
 */
int model_read_runs(struct model *m, const char *dir, const char *const *which, size_t n,
		    uint64_t whole_bytes);

/* The reading is begun anew. */
void selection_restart(struct selection *s);

/* Parts of model_feed(): whether the record, the sample of that time or the message is to be
 * kept. `known`: the attempt is. */
bool selection_takes_task(struct model *m, struct worker *w, const struct task_record *r,
			  bool known);
bool selection_takes_time(const struct model *m, const struct worker *w, uint64_t boot_ns);
bool selection_takes_message(const struct model *m, const struct worker *w, uint64_t type,
			     const msgpack_object *map);

#endif
