/* SPDX-License-Identifier: BSD-3-Clause */
/* check_tasks.c - tasks that took longer than others of their kind, and tasks that are not
 * chunks. */
#include <math.h>
#include <string.h>

#include "collector/findings/check.h"
#include "collector/metrics/budget.h"

#define STRAGGLER_TASKS 10
#define IMPORT_BYTES 1000000

bool attempt_imports(const struct attempt *a)
{
	return value_number(count_of(&a->c, CREMA_C_import_read_bytes), NULL) >= IMPORT_BYTES;
}

/* Of one kind of task. */
struct stragglers {
	size_t first, n, late;
	const struct attempt *slowest; /* of the late ones */
	double median, excess;
	double importing; /* median of those that read modules; INFINITY if there are fewer than
			     two: `imports` covers one */
	double cost;	  /* of the wall time, for the excess */
};

/* A task that reads modules is only late compared with others that do. */
static double usual(const struct stragglers *s, const struct attempt *a)
{
	return attempt_imports(a) ? s->importing : s->median;
}

static bool is_late(const struct stragglers *s, const struct attempt *a, const struct check *c)
{
	double wall = attempt_seconds(a), than = usual(s, a);

	return wall >= than * c->first && wall - than >= c->second;
}

/* The extra time of the late tasks over the average, without waits for a core: on nodes that others
 * keep busy, one of several equal tasks is late by chance. */
static double own_excess(const struct kinds *k, const struct stragglers *s, const struct check *c)
{
	double sum = 0, excess = 0, one;
	size_t i;

	for (i = s->first; i < s->first + s->n; i++)
		sum += attempt_seconds(kind_at(k, i)) - attempt_queued_seconds(kind_at(k, i));
	for (i = s->first; i < s->first + s->n; i++) {
		if (!is_late(s, kind_at(k, i), c))
			continue;
		one = attempt_seconds(kind_at(k, i)) - attempt_queued_seconds(kind_at(k, i)) -
		      sum / (double)s->n;
		excess += fmax(one, 0);
	}
	return excess;
}

/* They are sorted by their time. */
static double importing_median(const struct kinds *k, size_t first, size_t n)
{
	size_t i, count = 0, at = 0;

	for (i = first; i < first + n; i++)
		count += attempt_imports(kind_at(k, i));
	for (i = first; i < first + n && count > 1; i++) {
		if (attempt_imports(kind_at(k, i)) && at++ == (count - 1) / 2)
			return attempt_seconds(kind_at(k, i));
	}
	return INFINITY;
}

static struct stragglers stragglers_of(const struct kinds *k, size_t first, size_t n,
				       const struct draft *d)
{
	struct stragglers s = {.first = first,
			       .n = n,
			       .median = kind_median(k, first, n),
			       .importing = importing_median(k, first, n)};
	const struct attempt *a;
	double than;
	size_t i;

	for (i = first; i < first + n; i++) {
		a = kind_at(k, i);
		if (!is_late(&s, a, d->check))
			continue;
		than = usual(&s, a);
		s.slowest = a;
		s.late++;
		s.excess += attempt_seconds(a) - than;
		s.cost += cost_of(d->costs, a) * (1 - than / attempt_seconds(a));
	}
	return s;
}

/* "72 % of it waiting for storage": the largest part of the slowest one's time. */
static void say_most(struct draft *d, const struct attempt *a)
{
	struct classes c;
	double most = 0, wall, v;
	unsigned int i, worst = 0;

	attempt_classes(a, &c);
	wall = value_number(c.wall, NULL);
	for (i = 0; i < CREMA_TIMES; i++) {
		v = value_number(c.cls[i], NULL);
		if (v > most)
			worst = i, most = v;
	}
	if (!(most > 0) || !(wall > 0))
		return;
	draft_evidence(d, "slowest_class", value_text(class_name(worst)), "");
	draft_evidence(d, "slowest_class_percent", value_real(most / wall * 100), "%");
	draft_sentence_more(d, ", %s of it %s", draft_percent(d, most / wall * 100),
			    class_words(worst));
}

static enum verdict say_stragglers(const struct report *r, struct draft *d, const struct kinds *k,
				   const struct stragglers *s)
{
	const struct attempt *slow = s->slowest;
	double wall = attempt_seconds(slow);

	draft_evidence(d, "prefix", value_text(slow->prefix ? slow->prefix : "unknown"), "");
	draft_evidence(d, "tasks", value_uint(s->n), "tasks");
	draft_evidence(d, "stragglers", value_uint(s->late), "tasks");
	draft_evidence(d, "median_seconds", value_real(s->median), "s");
	draft_evidence(d, "excess_seconds", value_real(s->excess), "s");
	draft_evidence(d, "slowest_seconds", value_real(wall), "s");
	draft_evidence(d, "slowest_worker", value_text(slow->worker->label), "");
	draft_sentence(
		d,
		"%zu of %zu tasks %s took %s longer in total than the median of %s each; the "
		"slowest took %s",
		s->late, s->n, draft_name(d, run_prefix_shown(r->run, slow->prefix)),
		draft_human(d, value_real(s->excess), AS_SECONDS),
		draft_human(d, value_real(s->median), AS_SECONDS),
		draft_human(d, value_real(wall), AS_SECONDS));
	say_most(d, slow);
	draft_sentence_more(d, ", on %s", draft_name(d, slow->worker->label));
	draft_place(d, slow, "slowest_");
	draft_cost(d, s->cost);
	draft_gain_most(d, s->cost);
	if (own_excess(k, s, d->check) < d->check->second / 2)
		draft_severity(d, FINDING_NOTE);
	return draft_found(d, r->facts->tasks.wall > 0 ? s->excess / r->facts->tasks.wall : 0);
}

enum verdict finding_stragglers(const struct report *r, struct draft *d)
{
	struct stragglers s, worst = {0};
	enum verdict verdict = CHECK_IDLE;
	const struct kinds *k = d->kinds;
	size_t i, n;

	for (i = 0; i < k->n; i += n) {
		n = kind_count(k, i);
		if (n < STRAGGLER_TASKS)
			continue;
		s = stragglers_of(k, i, n, d);
		verdict = CHECK_QUIET;
		if (s.excess > worst.excess)
			worst = s;
	}
	return worst.late ? say_stragglers(r, d, k, &worst) : verdict;
}

/* Extra time of importing tasks of one kind over the median of the others. */
static double import_excess(const struct kinds *k, size_t first, size_t n, size_t *count)
{
	double median = -1, excess = 0;
	size_t i, plain = 0, at = 0;

	for (i = first; i < first + n; i++)
		plain += !attempt_imports(kind_at(k, i));
	if (!plain)
		return 0;
	for (i = first; i < first + n && median < 0; i++) {
		if (!attempt_imports(kind_at(k, i)) && at++ == (plain - 1) / 2)
			median = attempt_seconds(kind_at(k, i));
	}
	for (i = first; i < first + n; i++) {
		if (attempt_imports(kind_at(k, i)) && attempt_seconds(kind_at(k, i)) > median) {
			excess += attempt_seconds(kind_at(k, i)) - median;
			++*count;
		}
	}
	return excess;
}

double import_seconds(const struct kinds *k, size_t *tasks)
{
	double excess = 0;
	size_t i, n;

	for (i = 0; i < k->n; i += n) {
		n = kind_count(k, i);
		excess += import_excess(k, i, n, tasks);
	}
	return excess;
}

enum verdict finding_imports(const struct report *r, struct draft *d)
{
	struct value bytes = metric_import_read_bytes(r->facts);
	double excess, wall = r->facts->tasks.wall;
	size_t count = 0;
	bool known;

	value_number(bytes, &known);
	if (!known)
		return draft_unknown(d, "import_read_bytes");
	if (r->facts->tasks.count[CREMA_C_import_read_bytes].v < IMPORT_BYTES)
		return CHECK_QUIET; /* none of them did */
	excess = import_seconds(d->kinds, &count);
	if (!reaches(excess, wall, d->check->first, d->check->second))
		return CHECK_QUIET;
	draft_evidence(d, "tasks", value_uint(count), "tasks");
	draft_evidence(d, "excess_seconds", value_real(excess), "s");
	draft_evidence(d, "task_wall_seconds", value_real(wall), "s");
	draft_evidence(d, "import_read_bytes", bytes, "bytes");
	draft_sentence(
		d,
		"%zu task%s read Python modules (%s in total) and took %s longer than others of "
		"their kind, %s of the tasks' time",
		count, count == 1 ? "" : "s", draft_human(d, bytes, AS_BYTES),
		draft_human(d, value_real(excess), AS_SECONDS),
		draft_percent(d, excess / wall * 100));
	draft_evidence(d, "percent", value_real(excess / wall * 100), "%");
	draft_cost(d, cost_part(excess, d->costs->task_seconds, d->costs->any));
	return draft_found(d, excess / wall);
}

/* A run's first tasks wait for imports that begin before them. */
#define FRESH_SECONDS 10

static struct value tasks_cpu_ns(const struct history_point *p)
{
	uint32_t both = 1u << HISTORY_cpu_seconds | 1u << HISTORY_pool_cpu_seconds;

	return (p->known & both) == both
		       ? value_uint(p->v[HISTORY_cpu_seconds] + p->v[HISTORY_pool_cpu_seconds])
		       : value_null();
}

/* A worker's first totals may lack some. */
static bool is_complete(const struct history_point *p)
{
	return p->outside_cpu_ns.type != VALUE_NULL && p->outside_import_bytes.type != VALUE_NULL &&
	       tasks_cpu_ns(p).type != VALUE_NULL;
}

/* UTC, s. */
static double taken_at(const struct worker *w, const struct history_point *p)
{
	return worker_utc(w, p->snapshot_ns ? p->snapshot_ns : p->boot_ns);
}

/* The worker's totals when the run had ended, and those of `earlier_s` before it began: what an
 * idle worker uses is not of the run. NULL: no totals. */
static const struct history_point *around_run(const struct run *run, const struct worker *w,
					      double earlier_s, const struct history_point **before)
{
	const struct history_point *after = NULL, *p = w->history.v;
	double taken = 0;

	*before = NULL;
	for (; p < w->history.v + w->history.n && !(after && taken >= run->stop); p++) {
		if (!is_complete(p))
			continue;
		taken = taken_at(w, p);
		if (taken <= run->start - earlier_s)
			*before = p;
		else
			after = p;
	}
	return after ? after : *before;
}

/* Of numbers that both points have. */
static double grown(struct value from, struct value to)
{
	return value_number(value_minus(to, from), NULL);
}

/* CPU of threads without a task from the run's beginning to its end, s; NAN: unknown. */
static double outside_cpu_s(const struct report *r)
{
	const struct history_point *after, *before;
	double sum = 0;

	for (size_t i = 0; i < r->run->workers.n; i++) {
		after = around_run(r->run, r->run->workers.v[i], 0, &before);
		if (!after || !before)
			return (double)NAN;
		sum += grown(before->outside_cpu_ns, after->outside_cpu_ns) / 1e9;
	}
	return sum;
}

/* Of one worker. What ended before its first totals in the run may be of an earlier run. */
static double children_of(const struct run *run, const struct worker *w)
{
	const struct history_point *first = NULL, *last = NULL, *p = w->history.v;
	bool any = false;
	double taken = 0;

	for (; p < w->history.v + w->history.n && taken < run->stop; p++) {
		if (p->children_cpu_ns.type == VALUE_NULL)
			continue;
		any = true;
		taken = taken_at(w, p);
		if (taken < run->start)
			continue;
		first = first ? first : p;
		last = p;
	}
	if (!first)
		return any ? 0 : (double)NAN;
	return grown(first->children_cpu_ns, last->children_cpu_ns) / 1e9;
}

double children_cpu_s(const struct report *r)
{
	double sum = 0;

	for (size_t i = 0; i < r->run->workers.n; i++)
		sum += children_of(r->run, r->run->workers.v[i]);
	return sum;
}

/* Pools that libraries keep between tasks; Dask's own threads use less. */
#define OUTSIDE_PART 0.5

bool draft_libraries(struct draft *d, const struct report *r, double waited_s)
{
	struct value cpu = value_real(outside_cpu_s(r));

	if (!(cpu.v.d >= waited_s * OUTSIDE_PART))
		return false;
	draft_evidence(d, "outside_cpu_seconds", cpu, "s");
	draft_sentence_more(d,
			    ", and threads of these workers that belong to no task used %s of CPU "
			    "meanwhile",
			    draft_human(d, cpu, AS_SECONDS));
	return true;
}

enum verdict finding_outside_threads(const struct report *r, struct draft *d)
{
	bool known;
	double outside = outside_cpu_s(r);
	double tasks = value_number(metric_total_cpu_time_true_all(r->facts), &known);

	if (isnan(outside) || !known)
		return draft_unknown(d, known ? "unattributed" : "total_cpu_time_true_all");
	if (outside < d->check->second || outside * 100 < tasks * d->check->first)
		return CHECK_QUIET;
	draft_evidence(d, "outside_cpu_seconds", value_real(outside), "s");
	draft_evidence(d, "tasks_cpu_seconds", value_real(tasks), "s");
	draft_sentence(d,
		       "threads of the workers that belong to no task used %s of CPU during the "
		       "run; tasks used %s",
		       draft_human(d, value_real(outside), AS_SECONDS),
		       draft_human(d, value_real(tasks), AS_SECONDS));
	return draft_found(d, outside / (outside + tasks));
}

bool fresh_workers(const struct report *r, struct fresh *f)
{
	static const struct history_point start = {.known = UINT32_MAX,
						   .outside_cpu_ns = {.type = VALUE_UINT},
						   .outside_import_bytes = {.type = VALUE_UINT}};
	const struct history_point *after, *before;
	double imports;
	size_t i;

	memset(f, 0, sizeof(*f));
	for (i = 0; i < r->run->attempts.n; i++) {
		const struct attempt *a = r->run->attempts.v[i];

		if (a->attempt != 1)
			continue; /* its worker needs those imports for its first task */
		after = around_run(r->run, a->worker, FRESH_SECONDS, &before);
		if (!after)
			return false;
		before = before ? before : &start;
		imports = grown(before->outside_import_bytes, after->outside_import_bytes);
		if (imports < IMPORT_BYTES)
			continue;
		f->workers++;
		f->import_bytes += imports;
		f->cpu += grown(before->outside_cpu_ns, after->outside_cpu_ns) / 1e9;
		f->tasks_cpu += grown(tasks_cpu_ns(before), tasks_cpu_ns(after)) / 1e9;
	}
	return true;
}

/* At most the time without a task: some of the CPU was used before the run. */
static double cost_of_start(const struct report *r, const struct fresh *f)
{
	struct budget b;

	if (!budget_build(&b, r->facts) || !(b.threads > 0))
		return (double)NAN;
	return fmin(f->cpu / (double)f->workers, b.idle / b.threads);
}

enum verdict finding_fresh_workers(const struct report *r, struct draft *d)
{
	struct fresh f;
	double cost;

	if (!fresh_workers(r, &f))
		return draft_unknown(d, "unattributed: cpu_seconds");
	if (!f.workers || !reaches(f.cpu, f.tasks_cpu, d->check->first, d->check->second))
		return CHECK_QUIET;
	draft_evidence(d, "workers", value_uint(f.workers), "workers");
	draft_evidence(d, "unattributed_cpu_seconds", value_real(f.cpu), "s");
	draft_evidence(d, "tasks_cpu_seconds", value_real(f.tasks_cpu), "s");
	draft_evidence(d, "unattributed_import_read_bytes", value_real(f.import_bytes), "bytes");
	draft_sentence(d,
		       "%zu fresh worker%s imported %s of Python modules outside tasks; threads "
		       "without a task used %s of CPU there, tasks used %s",
		       f.workers, f.workers == 1 ? "" : "s",
		       draft_human(d, value_real(f.import_bytes), AS_BYTES),
		       draft_human(d, value_real(f.cpu), AS_SECONDS),
		       draft_human(d, value_real(f.tasks_cpu), AS_SECONDS));
	cost = cost_of_start(r, &f);
	draft_cost(d, cost);
	/* before the first task of the run, or a second that each run on fresh workers pays */
	if (cost < r->facts->wall_time / 10 || cost < 1)
		draft_severity(d, FINDING_NOTE);
	return draft_found(d, f.cpu / (f.cpu + f.tasks_cpu));
}

enum verdict finding_dask_overhead(const struct report *r, struct draft *d)
{
	const struct tally *all = &r->facts->tasks, *work = &r->facts->work;
	double rest = all->wall - work->wall, one, most = 0;
	const struct kinds *k = d->kinds;
	const char *name = NULL;
	size_t i, j, n;

	if (!r->facts->chunks.attempts)
		return CHECK_IDLE;
	if (all->wall_ns.unknown)
		return draft_unknown(d, "task_wall_seconds");
	if (!reaches(rest, all->wall, d->check->first, d->check->second))
		return CHECK_QUIET;
	draft_evidence(d, "seconds", value_real(rest), "s");
	draft_evidence(d, "task_wall_seconds", value_real(all->wall), "s");
	draft_evidence(d, "percent", value_real(rest / all->wall * 100), "%");
	draft_evidence(d, "tasks", value_uint(all->attempts - work->attempts), "tasks");
	draft_sentence(d, "%s of the tasks' time (%s) went to tasks other than chunks (%zu)",
		       draft_percent(d, rest / all->wall * 100),
		       draft_human(d, value_real(rest), AS_SECONDS),
		       all->attempts - work->attempts);
	for (i = 0; i < k->n; i += n) {
		n = kind_count(k, i);
		for (j = i, one = 0; j < i + n; j++)
			one += attempt_class(r->facts, kind_at(k, j)) == TASK_WORK
				       ? 0
				       : attempt_seconds(kind_at(k, j));
		if (one > most)
			name = kind_at(k, i)->prefix, most = one;
	}
	if (name) {
		draft_evidence(d, "most_prefix", value_text(name), "");
		draft_evidence(d, "most_seconds", value_real(most), "s");
		draft_sentence_more(d, ", %s of it to %s",
				    draft_human(d, value_real(most), AS_SECONDS),
				    draft_name(d, run_prefix_shown(r->run, name)));
	}
	draft_cost(d, cost_part(rest, d->costs->task_seconds, d->costs->any));
	return draft_found(d, rest / all->wall);
}
