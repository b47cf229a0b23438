/* SPDX-License-Identifier: BSD-3-Clause */
/* check_client.c - the client's activity while no task ran. */
#include <math.h>

#include "collector/findings/check.h"

/* The other parts are the analysis itself, or findings of tasks and workers. */
static const struct {
	enum wall_part part;
	const char *advice;
} advised[] = {
	{WALL_imports,
	 "Import only what the analysis uses, keep Python's packages on a local disk, and make "
	 "several runs in one Python process (a notebook)."},
	{WALL_workers,
	 "Start the cluster before the analysis and keep it for several runs, or begin when the "
	 "first worker has arrived: client.wait_for_workers(1)."},
	{WALL_graph,
	 "Use fewer, larger partitions (step_size) and fill several variations at once; or run the "
	 "processor with coffea's Runner, which builds no graph."},
	{WALL_send, "Send what tasks share once (client.scatter), or let the workers load it; use "
		    "fewer tasks."},
	{WALL_preprocess,
	 "Save what preprocessing returns and pass it to the next runs: the fileset of "
	 "coffea.dataset_tools.preprocess, or the Runner's metadata_cache."},
	{WALL_schedule,
	 "Use fewer tasks, so that the scheduler unpacks a smaller graph, and let workers import "
	 "packages beforehand: client.run(function that imports them)."},
	{WALL_gather,
	 "Return histograms instead of arrays, add them up on the workers, and write large "
	 "results to files there."},
};
#define ADVISED (sizeof(advised) / sizeof(*advised))

/* Each analysis starts Python and a cluster and reads its files: below this a change is hardly
 * worth it. */
#define START_SECONDS 10.0

static bool is_usual_start(enum wall_part part, double seconds)
{
	return (part == WALL_imports || part == WALL_workers || part == WALL_preprocess) &&
	       seconds < START_SECONDS;
}

/* The longest of the parts that belong to a usual start, or of the others. */
static size_t longest(const struct wall *w, bool usual, double *seconds, const char **unknown)
{
	size_t i, most = 0;
	struct value v;

	*seconds = 0;
	for (i = 0; i < ADVISED; i++) {
		v = w->part[advised[i].part];
		if (v.type == VALUE_NULL)
			*unknown = wall_parts[advised[i].part].id;
		else if (v.v.d > *seconds && is_usual_start(advised[i].part, v.v.d) == usual) {
			*seconds = v.v.d;
			most = i;
		}
	}
	return most;
}

enum verdict finding_client_part(const struct report *r, struct draft *d)
{
	const struct wall *w = r->wall;
	const char *unknown = NULL;
	double seconds = 0;
	size_t most;

	if (!w)
		return CHECK_IDLE;
	most = longest(w, false, &seconds, &unknown);
	if (!reaches(seconds, w->seconds, d->check->first, d->check->second)) {
		most = longest(w, true, &seconds, &unknown);
		if (!reaches(seconds, w->seconds, d->check->first, d->check->second))
			return unknown ? draft_unknown(d, unknown) : CHECK_QUIET;
		draft_severity(d, FINDING_NOTE);
	}
	draft_evidence(d, "part", value_text(wall_parts[advised[most].part].id), "");
	draft_evidence(d, "seconds", value_real(seconds), "s");
	draft_evidence(d, "client_wall_seconds", value_real(w->seconds), "s");
	draft_evidence(d, "percent", value_real(seconds / w->seconds * 100), "%");
	draft_sentence(d, "%s took %s of the client's %s (%s)",
		       wall_parts[advised[most].part].words,
		       draft_human(d, value_real(seconds), AS_SECONDS),
		       draft_human(d, value_real(w->seconds), AS_SECONDS),
		       draft_percent(d, seconds / w->seconds * 100));
	draft_advise(d, "%s", advised[most].advice);
	d->f.of_s = w->seconds; /* longer than the tasks' wall time */
	draft_cost(d, seconds);
	return draft_found(d, seconds / w->seconds);
}
