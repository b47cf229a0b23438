/* SPDX-License-Identifier: BSD-3-Clause */
/* check_time.c - what counted tasks spent their time on. */
#include "collector/findings/check.h"

/* A class of counted tasks' time: 0 and `*verdict` unless it is known. */
struct share {
	struct value seconds;
	double s, wall, percent;
};

static bool share_of(const struct report *r, struct draft *d, enum crema_time_id id,
		     const char *metric, struct share *out, enum verdict *verdict)
{
	const struct tally *t = &r->facts->tasks;
	bool known;

	*verdict = CHECK_IDLE;
	if (!t->timed || !(t->wall > 0))
		return false;
	out->seconds = tally_class(t, id);
	out->s = value_number(out->seconds, &known);
	out->wall = t->wall;
	out->percent = out->s / t->wall * 100;
	*verdict = known ? CHECK_QUIET : draft_unknown(d, metric);
	return known && reaches(out->s, t->wall, d->check->first, d->check->second);
}

static void see_share(struct draft *d, const struct share *s, const char *metric)
{
	draft_see(d, metric, s->seconds, "s");
	draft_see(d, "task_wall_seconds", value_real(s->wall), "s");
	draft_see(d, "percent", value_real(s->percent), "%");
}

enum verdict finding_gil_wait(const struct report *r, struct draft *d)
{
	struct value threads = metric_cores_per_worker(r->facts);
	enum verdict verdict;
	struct share s;
	bool known;

	if (!share_of(r, d, CREMA_T_gil_wait, "gil_wait_seconds", &s, &verdict))
		return verdict;
	see_share(d, &s, "gil_wait_seconds");
	draft_say(d, "tasks waited %s of their time (%s) for the interpreter lock",
		  draft_percent(d, s.percent), draft_human(d, s.seconds, AS_SECONDS));
	if (value_number(threads, &known) > 0 && known) {
		draft_see(d, "cores_per_worker", threads, "threads");
		draft_say_more(d, "; workers had %s threads", draft_human(d, threads, AS_IS));
	}
	if (known && value_number(threads, NULL) <= 1)
		draft_advise(d, "The workers have one thread each: the lock is held by threads "
				"that tasks start themselves, or by the worker's own.");
	return draft_found(d, s.percent / 100);
}

enum verdict finding_storage_wait(const struct report *r, struct draft *d)
{
	const struct tally *t = &r->facts->tasks;
	struct value large = sum_value(&t->count[CREMA_C_large_read_bytes]);
	struct value cached = sum_value(&t->count[CREMA_C_cached_bytes]);
	struct value percent = value_ratio(cached, large, 100);
	enum verdict verdict;
	struct share s;
	bool known;

	if (!share_of(r, d, CREMA_T_storage_wait, "storage_wait_seconds", &s, &verdict))
		return verdict;
	see_share(d, &s, "storage_wait_seconds");
	draft_say(d, "tasks waited %s of their time (%s) for storage", draft_percent(d, s.percent),
		  draft_human(d, s.seconds, AS_SECONDS));
	value_number(percent, &known);
	if (known) {
		draft_see(d, "cached_bytes", cached, "bytes");
		draft_see(d, "large_read_bytes", large, "bytes");
		draft_see(d, "cached_percent", percent, "%");
		draft_say_more(d, "; %s of what large reads returned was in the page cache",
			       draft_percent(d, value_number(percent, NULL)));
	}
	return draft_found(d, s.percent / 100);
}
