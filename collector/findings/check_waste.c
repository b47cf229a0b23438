/* SPDX-License-Identifier: BSD-3-Clause */
/* check_waste.c - attempts that ended without counting, by reason. */
#include <math.h>
#include <string.h>

#include "collector/findings/check.h"

struct lost {
	struct tally t;
	const struct attempt *example; /* the first of them */
	double cost;		       /* of the run's wall time */
};

/* Attempts with one of two reasons; `other` may be NULL. */
static void lost_of(const struct report *r, const struct draft *d, const char *reason,
		    const char *other, struct lost *out)
{
	const struct attempt *a;
	size_t i;

	memset(out, 0, sizeof(*out));
	for (i = 0; i < r->run->attempts.n; i++) {
		a = r->run->attempts.v[i];
		if (!a->waste_reason || (strcmp(a->waste_reason, reason) != 0 &&
					 (!other || strcmp(a->waste_reason, other) != 0)))
			continue;
		tally_add(&out->t, a);
		out->cost += cost_of(d->costs, a);
		out->example = out->example ? out->example : a;
	}
}

/* What the first of them raised: the cause if it is known, as coffea wraps it. */
static void say_raised(struct draft *d, const struct attempt *a)
{
	const struct attempt_shared *s = a->c.shared;

	if (!s || !s->error_type)
		return;
	draft_evidence(d, "error_type", value_text(s->error_type), "");
	if (s->error_cause || s->error_text)
		draft_evidence(d, "error",
			       value_text(s->error_cause ? s->error_cause : s->error_text), "");
	draft_sentence_more(d, "; it raised %s",
			    draft_name(d, s->error_cause ? s->error_cause : s->error_type));
	if (!s->error_cause && s->error_text)
		draft_sentence_more(d, " (%s)", draft_name(d, s->error_text));
}

/* Whether the run's state, above all findings, names this attempt, its place and what it raised. */
static bool told_by_state(const struct report *r, const struct attempt *a)
{
	const struct run_state *s = &r->facts->state;

	return s->id == RUN_STATE_FAILED && s->failed == a;
}

/* Whether the text can be quoted in a line of Python. */
static bool plain_text(const char *s)
{
	while (*s >= ' ' && *s <= '~' && *s != '\'' && *s != '\\')
		s++;
	return !*s;
}

/* Suggests the line that runs only this chunk; Dask's name of the task is that of the processor's
 * class, unless the key has none. */
static void advise_chunk(const struct report *r, struct draft *d, const struct attempt *a)
{
	struct value from = attempt_i64(a, TASK_F_entrystart),
		     to = attempt_i64(a, TASK_F_entrystop);
	const char *processor = run_prefix_shown(r->run, a->prefix);

	if (!attempt_is_chunk(a) || !a->filename || !a->c.shared || !a->c.shared->treename ||
	    !plain_text(a->filename) || from.type != VALUE_INT || to.type != VALUE_INT)
		return;
	draft_advise(d,
		     "See the error alone: %s().process(NanoEventsFactory.from_root({'%s': %s}, "
		     "entry_start=%s, entry_stop=%s).events())",
		     processor ? processor : "YourProcessor", a->filename,
		     draft_name(d, a->c.shared->treename), draft_integer(d, (double)from.v.i),
		     draft_integer(d, (double)to.v.i));
}

/* "3 attempts <what>: 12 s of work, 1.2 GB read"; the known part if some are unknown. */
static void say_lost(const struct report *r, struct draft *d, const struct lost *lost,
		     const char *what)
{
	struct value wall = value_seconds(sum_known(&lost->t.wall_ns));
	struct value read = sum_known(&lost->t.count[CREMA_C_read_bytes]);
	bool wall_known, read_known;
	const char *said;

	value_number(wall, &wall_known);
	value_number(read, &read_known);
	draft_evidence(d, "attempts", value_uint(lost->t.attempts), "attempts");
	draft_sentence(d, "%zu attempt%s %s", lost->t.attempts, lost->t.attempts == 1 ? "" : "s",
		       what);
	if (wall_known) {
		draft_evidence(d, "wall_seconds", wall, "s");
		draft_sentence_more(d, ": %s of work%s", draft_human(d, wall, AS_SECONDS),
				    lost->t.wall_ns.unknown ? " at least" : "");
	}
	if (wall_known && read_known && value_number(read, NULL) > 0) {
		draft_evidence(d, "read_bytes", read, "bytes");
		draft_sentence_more(d, ", %s read", draft_human(d, read, AS_BYTES));
	}
	said = d->f.sentence;
	if (lost->example->prefix) {
		draft_evidence(d, "prefix", value_text(lost->example->prefix), "");
		draft_sentence_more(d, "; the first was of kind %s",
				    draft_name(d, run_prefix_shown(r->run, lost->example->prefix)));
		draft_place(d, lost->example, "first_");
	}
	say_raised(d, lost->example);
	if (told_by_state(r, lost->example)) /* the evidence stays */
		d->f.sentence = said;
	draft_cost(d, lost->t.wall_ns.unknown ? (double)NAN : lost->cost);
}

static double weight_of(const struct report *r, const struct lost *lost)
{
	double all = (double)r->facts->all.wall_ns.v;

	return all > 0 ? (double)lost->t.wall_ns.v / all : 0;
}

enum verdict finding_killed_work(const struct report *r, struct draft *d)
{
	const struct worker *w;
	struct lost lost;

	lost_of(r, d, "killed", "lost", &lost);
	if ((double)lost.t.attempts < d->check->first)
		return CHECK_QUIET;
	say_lost(r, d, &lost,
		 lost.t.attempts == 1 ? "was lost with its worker"
				      : "were lost with their workers");
	w = lost.example->worker;
	draft_evidence(d, "worker", value_text(w->label), "");
	draft_sentence_more(d, "; %s ", draft_name(d, w->label));
	if (w->goodbye_how) {
		draft_evidence(d, "how", value_text(w->goodbye_how), "");
		draft_sentence_more(d, "ended by %s", draft_name(d, w->goodbye_how));
	} else {
		draft_sentence_more(d, "sent no goodbye");
	}
	if (w->goodbye_cause) {
		draft_evidence(d, "cause", value_text(w->goodbye_cause), "");
		draft_sentence_more(d, " (%s)", draft_name(d, w->goodbye_cause));
	}
	draft_gain_most(d, d->f.cost_s);
	return draft_found(d, weight_of(r, &lost));
}

enum verdict finding_failed_work(const struct report *r, struct draft *d)
{
	struct lost lost;

	lost_of(r, d, "erred", NULL, &lost);
	if ((double)lost.t.attempts < d->check->first)
		return CHECK_QUIET;
	say_lost(r, d, &lost, "failed for good");
	advise_chunk(r, d, lost.example);
	return draft_found(d, weight_of(r, &lost));
}

enum verdict finding_retried_work(const struct report *r, struct draft *d)
{
	struct lost lost;

	lost_of(r, d, "retried", NULL, &lost);
	if ((double)lost.t.attempts < d->check->first)
		return CHECK_QUIET;
	say_lost(r, d, &lost,
		 lost.t.attempts == 1 ? "failed and was repeated" : "failed and were repeated");
	draft_gain_most(d, d->f.cost_s);
	return draft_found(d, weight_of(r, &lost));
}

enum verdict finding_recomputed_work(const struct report *r, struct draft *d)
{
	struct lost lost;

	lost_of(r, d, "recomputed", "stolen", &lost);
	if ((double)lost.t.attempts < d->check->first + (double)r->run->again)
		return CHECK_QUIET; /* a later call requested the others: run_company_say() */
	say_lost(r, d, &lost, "succeeded but ran twice");
	draft_gain_most(d, d->f.cost_s);
	return draft_found(d, weight_of(r, &lost));
}
