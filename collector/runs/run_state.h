/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run_state.h - whether a run has finished, failed, was interrupted, is running or hangs, and why.
 *
 *	struct run_state s;
 *	if (!run_state_find(run, &s)) ... s.id, s.why ...
 *	run_state_sentence(&s, line, sizeof(line));	"finished", "failed: ValueError: ..."
 *
 * running      a task is running, or waits on a worker that is present
 * stalled      the same, but no task began or ended for run_stall_seconds and RUN_STALL_MEDIANS
 *              times the median task, the workers used less than RUN_STALL_CPU_PERCENT of a core
 *              for each running task, and their tasks neither read nor wrote; or the last workers
 *              were killed or went silent while a client was waiting for tasks
 * failed       the run is over, and a task failed without a later success
 * interrupted  the run is over: its client left or took back unfinished tasks, and nothing began
 *              afterwards; or its workers ended with tasks that were not done afterwards,
 *              as far as the other workers' records show
 * finished     none of these. Tasks that wait only in the scheduler are not visible
 *
 * "Now" is the latest message in the journal. Texts are the model's. One thread.
 */
#ifndef CREMA_COLLECTOR_RUNS_RUN_STATE_H
#define CREMA_COLLECTOR_RUNS_RUN_STATE_H

#include "collector/emit/emit_json.h"
#include "collector/runs/runs.h"

#define RUN_STALL_MEDIANS 10.0
#define RUN_STALL_CPU_PERCENT 20.0
#define RUN_WENT_ON_SECONDS 1.0 /* tolerance for work in transit when tasks were taken back */
#define RUN_SENTENCE_BYTES 512

extern double run_stall_seconds; /* 30; CREMA_STALL_AFTER, set before any run is judged */

enum run_state_id {
	RUN_STATE_RUNNING,
	RUN_STATE_FINISHED,
	RUN_STATE_FAILED,
	RUN_STATE_INTERRUPTED,
	RUN_STATE_STALLED,
	RUN_STATES
};

enum run_state_why {
	RUN_WHY_NONE,
	RUN_WHY_TASK_FAILED,
	RUN_WHY_PAUSED,	      /* stalled: workers are paused by Dask */
	RUN_WHY_IN_CALL,      /* stalled: a task is still in a call */
	RUN_WHY_NO_WORKER,    /* stalled: all workers are gone, but the client was still there */
	RUN_WHY_UNKNOWN,      /* stalled: the workers report nothing that explains it */
	RUN_WHY_CLIENT_LEFT,  /* interrupted: the scheduler lost the client */
	RUN_WHY_TAKEN_BACK,   /* interrupted: the client cancelled or released tasks */
	RUN_WHY_CLOSED,	      /* interrupted: the cluster was closed */
	RUN_WHY_WORKERS_GONE, /* interrupted: the workers were killed or went silent */
	RUN_WHYS
};

struct run_state {
	enum run_state_id id;
	enum run_state_why why;
	const struct run *run;
	double now, since;	/* UTC: the latest message; the last begin or end of a task */
	double waiting;		/* ready on present workers; NAN: unknown */
	size_t workers, paused; /* that are present */
	size_t silent;		/* gone without a goodbye: what they did at last is unknown */
	double paused_percent;	/* of its memory limit: the fullest paused one; NAN: unknown */
	double paused_since;	/* UTC: since the first one was; NAN */
	size_t failures;	/* tasks that failed, with no later success */
	size_t unfinished;	/* attempts and waiting tasks that ended with their worker */
	size_t doubtful;	/* of these: a worker that is silent may have run them again */
	uint64_t taken_back;	/* tasks, before they ended */
	const struct attempt *failed;  /* the first */
	const struct attempt *in_call; /* running: longest in its call, else first begun */
	const struct doing *stuck;     /* its call; NULL: unknown */
	double stuck_since;	       /* UTC; NAN */
	double client_waits;	       /* tasks, from the scheduler's last answer; NAN: unknown */
};

/* 0 or -ENOMEM. */
int run_state_find(const struct run *r, struct run_state *s);
/* "running", "finished", ... */
const char *run_state_name(enum run_state_id id);
/* "workers paused", ...; NULL: RUN_WHY_NONE */
const char *run_why_name(enum run_state_why why);
/* One line for people, cut to n bytes; control characters in names are replaced. Returns `line`. */
const char *run_state_sentence(const struct run_state *s, char *line, size_t n);
/* Writes the member `name` of the open object. */
void run_state_json(const struct run_state *s, struct json *j, const char *name);

#endif
