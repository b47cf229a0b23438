/* SPDX-License-Identifier: BSD-3-Clause */
/* check_state.c - runs that hang, and runs that ended before their tasks did. */
#include <math.h>

#include "collector/findings/check.h"

static void see_stall(struct draft *d, const struct run_state *s)
{
	draft_evidence(d, "quiet_seconds", value_real(s->now - s->since), "s");
	draft_evidence(d, "running", value_uint(s->run->running), "tasks");
	if (!isnan(s->waiting))
		draft_evidence(d, "ready", value_real(s->waiting), "tasks");
	draft_evidence(d, "workers", value_uint(s->workers), "workers");
	draft_evidence(d, "paused_workers", value_uint(s->paused), "workers");
	if (!isnan(s->paused_percent))
		draft_evidence(d, "paused_memory_percent", value_real(s->paused_percent), "%");
	if (s->in_call && s->in_call->key)
		draft_evidence(d, "longest_running", value_text(s->in_call->key), "");
	if (s->stuck)
		draft_evidence(d, "call", value_text(s->stuck->call), "");
	if (s->stuck && *s->stuck->line)
		draft_evidence(d, "line", value_text(s->stuck->line), "");
}

static void say_state(struct draft *d, const struct run_state *s)
{
	char line[RUN_SENTENCE_BYTES];

	run_state_sentence(s, line, sizeof(line));
	draft_sentence(d, "the run %s %s", strncmp(line, "stalled for", 11) ? "is" : "has been",
		       line);
}

/* The thresholds are those of the state: run_state.h. */
enum verdict finding_stalled(const struct report *r, struct draft *d)
{
	const struct run_state *s = &r->facts->state;

	if (s->id != RUN_STATE_STALLED)
		return CHECK_QUIET;
	say_state(d, s);
	see_stall(d, s);
	if (s->why == RUN_WHY_PAUSED)
		draft_advise(d, "Dask pauses a worker whose memory is above 80 %% of its limit "
				"until memory is freed: stop the run and give workers more "
				"memory, or find the objects that tasks leave behind.");
	else if (s->why == RUN_WHY_NO_WORKER)
		draft_advise(d, "Start workers again, and find out why they ended: check the "
				"batch system's log, or dmesg for memory.");
	else if (s->why == RUN_WHY_UNKNOWN)
		draft_advise(d, "Check the scheduler's log, and whether the tasks need resources "
				"or workers that do not exist.");
	return draft_found(d, 1);
}

enum verdict finding_interrupted(const struct report *r, struct draft *d)
{
	const struct run_state *s = &r->facts->state;

	if (s->id != RUN_STATE_INTERRUPTED)
		return CHECK_QUIET;
	say_state(d, s);
	draft_evidence(d, "why", value_text(run_why_name(s->why)), "");
	draft_evidence(d, "tasks_taken_back", value_uint(s->taken_back), "tasks");
	draft_evidence(d, "unfinished_tasks", value_uint(s->unfinished), "tasks");
	if (s->why == RUN_WHY_WORKERS_GONE && s->doubtful)
		draft_advise(d, "Check in the client whether its results are complete, and why "
				"these workers and their agents were killed at once.");
	return draft_found(d, 1);
}
