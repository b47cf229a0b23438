/* SPDX-License-Identifier: BSD-3-Clause */
/* check_health.c - what a run's numbers lack. */
#include <inttypes.h>
#include <math.h>

#include "collector/findings/check.h"
#include "collector/metrics/metrics.h"

static void say_missing(struct draft *d, const char *name, double n, const char *what)
{
	if (!(n > 0))
		return;
	draft_evidence(d, name, value_real(n), "");
	draft_sentence_more(d, "%s%.0f %s", d->f.evidence_count > 1 ? ", " : "", n, what);
}

/* Numbers reported by workers: a silent one may have had more. */
#define SAY_TOLD(name, n, what) say_missing(d, r->silent ? #name "_at_least" : #name, n, what)

enum verdict finding_incomplete(const struct report *r, struct draft *d)
{
	const struct model *m = r->run->model;
	double tasks, records, lost, all;
	bool tasks_known, records_known;

	tasks = value_number(r->totals.tasks_refused, &tasks_known);
	records = value_number(r->totals.records_refused, &records_known);
	lost = value_number(r->records_lost, NULL);
	all = tasks + records + lost + (double)m->records_bad + (double)m->torn.n;
	if (all < d->check->first)
		return !tasks_known || !records_known ? draft_unknown(d, "records_refused")
		       : r->silent		      ? draft_unknown(d, "records_lost")
						      : CHECK_QUIET;
	draft_sentence(d, "data is missing: %s", r->silent ? "at least " : "");
	SAY_TOLD(tasks_refused, tasks, "tasks refused by full tables");
	SAY_TOLD(records_refused, records, "records refused");
	SAY_TOLD(records_lost, lost, "records lost in transit");
	say_missing(d, "records_bad", (double)m->records_bad, "records not understood");
	say_missing(d, "torn_files", (double)m->torn.n, "files truncated or unreadable");
	return draft_found(d, 1);
}

enum verdict finding_silent_workers(const struct report *r, struct draft *d)
{
	const struct worker *first = NULL;
	size_t i, n = 0;

	for (i = 0; i < r->run->workers.n; i++) {
		if (!r->run->workers.v[i]->silent)
			continue;
		first = first ? first : r->run->workers.v[i];
		n++;
	}
	if ((double)n < d->check->first)
		return CHECK_QUIET;
	draft_evidence(d, "silent_workers", value_uint(n), "workers");
	draft_evidence(d, "workers", value_uint(r->run->workers.n), "workers");
	draft_evidence(d, "worker", value_text(first->label), "");
	draft_sentence(d, "%zu of %zu workers went silent without a goodbye, the first of them %s",
		       n, r->run->workers.n, draft_name(d, first->label));
	return draft_found(d, (double)n / (double)r->run->workers.n);
}

enum verdict finding_unmeasured_tasks(const struct report *r, struct draft *d)
{
	const struct attempt *a, *first = NULL;
	size_t i, async = 0, elsewhere = 0;

	for (i = 0; i < r->run->attempts.n; i++) {
		a = r->run->attempts.v[i];
		if (!attempt_is_unmeasured(a))
			continue;
		first = first ? first : a;
		async += (a->flags & CREMA_TASK_ASYNC) != 0;
		elsewhere += (a->flags & CREMA_TASK_ELSEWHERE) != 0;
	}
	if ((double)(async + elsewhere) < d->check->first)
		return CHECK_QUIET;
	draft_evidence(d, "asynchronous", value_uint(async), "attempts");
	draft_evidence(d, "in_other_processes", value_uint(elsewhere), "attempts");
	draft_evidence(d, "attempts", value_uint(r->run->attempts.n), "attempts");
	draft_evidence(d, "prefix", value_text(first->prefix ? first->prefix : "unknown"), "");
	draft_sentence(
		d,
		"only the wall time of %zu attempt%s is known: %zu asynchronous and %zu in other "
		"processes, the first of kind %s",
		async + elsewhere, async + elsewhere == 1 ? "" : "s", async, elsewhere,
		draft_name(d, run_prefix_shown(r->run, first->prefix)));
	draft_evidence(d, "unmeasured", value_uint(async + elsewhere), "attempts");
	return draft_found(d, (double)(async + elsewhere) / (double)r->run->attempts.n);
}

enum verdict finding_child_processes(const struct report *r, struct draft *d)
{
	const struct tally *t = &r->facts->all;
	double children = children_cpu_s(r), tasks;
	bool known;

	if (isnan(children))
		return draft_unknown(d, "children");
	tasks = value_number(tally_cpu_part(t), &known);
	if (!known && (t->timed || !t->unmeasured))
		return draft_unknown(d, "total_cpu_time_true_all");
	if (children < d->check->second || children * 100 < tasks * d->check->first)
		return CHECK_QUIET;
	draft_evidence(d, "children_cpu_seconds", value_real(children), "s");
	draft_evidence(d, "tasks_cpu_seconds", tally_cpu_part(t), "s");
	draft_sentence(d, "child processes of the workers used at least %s of CPU during the run",
		       draft_human(d, value_real(children), AS_SECONDS));
	if (known)
		draft_sentence_more(d, "; %stasks used %s", t->unmeasured ? "the measured " : "",
				    draft_human(d, value_real(tasks), AS_SECONDS));
	return draft_found(d, children / (children + tasks));
}
