/* SPDX-License-Identifier: BSD-3-Clause */
/* findings.c - runs all checks of the table and sorts their findings. */
#include "collector/findings/findings.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/findings/check.h"

/* Which finding is left out in favour of which. */
static const struct yields {
	const char *id, *to;
	double percent;
} yields[] = {
#define YIELDS(id, to, percent) {#id, #to, percent},
#include "findings.def"
};

static const struct check checks[] = {
#define FINDING(id, severity, first, second, looks_at, when, advice)                               \
	{#id, FINDING_##severity, first, second, advice, finding_##id},
#include "findings.def"
};

#define CHECKS (sizeof(checks) / sizeof(*checks))

const char *finding_severity_name(enum finding_severity severity)
{
	static const char *const names[FINDING_SEVERITIES] = {"high", "warning", "note"};

	return names[severity];
}

static int take(struct findings *out, const struct draft *d, enum verdict verdict)
{
	struct finding_gap *gap;
	struct finding *f;
	const char **idle;

	if (verdict == CHECK_IDLE) {
		idle = array_grow(&out->idle_ids, &out->idle, &out->idle_cap, sizeof(*idle));
		if (!idle)
			return -ENOMEM;
		*idle = d->check->id;
	} else if (verdict == CHECK_UNKNOWN) {
		gap = array_grow(&out->gaps, &out->gap_count, &out->gap_cap, sizeof(*gap));
		if (!gap)
			return -ENOMEM;
		*gap = (struct finding_gap){d->check->id, d->unknown};
	} else {
		out->made++;
	}
	if (verdict != CHECK_FOUND)
		return 0;
	f = ARRAY_NEW(out);
	if (!f)
		return -ENOMEM;
	*f = d->f;
	return 0;
}

static bool yields_to(const struct yields *y, const struct finding *f, const struct finding *to)
{
	if (strcmp(y->id, f->id) != 0 || f == to || (f->apart && !strcmp(f->apart, to->id)))
		return false;
	if (strcmp(y->to, "ANY") ? strcmp(y->to, to->id) != 0 : to->severity == FINDING_NOTE)
		return false;
	if (isnan(f->cost_s) || isnan(to->cost_s))
		return y->percent <= 0;
	return to->cost_s * 100 >= f->cost_s * y->percent;
}

/* All are judged as found: one that is left out still makes others yield. */
static const struct yields *yields_of(const struct findings *all, const struct finding *f,
				      struct finding **to)
{
	size_t i, k;

	for (i = 0; i < sizeof(yields) / sizeof(*yields); i++) {
		for (k = 0; k < all->n; k++) {
			*to = &all->v[k];
			if (yields_to(&yields[i], f, *to))
				return &yields[i];
		}
	}
	return NULL;
}

/* A cause whose own cost is only partly known gets the sort position of the finding that it
 * causes. */
static void stand_for(struct finding *cause, const struct finding *f)
{
	if (cause->cost_is_least && f->cost_s > cause->rank_s)
		cause->rank_s = f->cost_s;
}

static void leave_out(struct findings *out)
{
	const struct yields *y;
	struct finding *to;
	size_t i;

	for (i = 0; i < out->n; i++)
		out->v[i].rank_s = out->v[i].cost_s;
	for (i = 0; i < out->n; i++) {
		y = yields_of(out, &out->v[i], &to);
		out->v[i].left_out_for = y ? to->id : NULL;
		if (y && y->percent <= 0 && strcmp(y->to, "ANY") != 0)
			stand_for(to, &out->v[i]);
	}
	for (i = 0; i < out->n; i++) {
		if (out->v[i].left_out_for)
			out->left_out++;
		else
			out->count[out->v[i].severity]++;
	}
}

/* Unknown costs come last; among notes, those that cannot be changed come just before them. */
static int by_cost(const void *pa, const void *pb)
{
	const struct finding *a = pa, *b = pb;

	if (!a->left_out_for != !b->left_out_for)
		return a->left_out_for ? 1 : -1;
	if (a->severity != b->severity)
		return a->severity < b->severity ? -1 : 1;
	if (isnan(a->cost_s) != isnan(b->cost_s))
		return isnan(a->cost_s) ? 1 : -1;
	if (a->beyond != b->beyond)
		return a->beyond ? 1 : -1;
	if (a->rank_s > b->rank_s || a->rank_s < b->rank_s)
		return a->rank_s > b->rank_s ? -1 : 1;
	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return strcmp(a->id, b->id);
}

static bool paid_once(const struct finding *f)
{
	static const char *const ids[] = {
#define ONCE(id) #id,
#include "findings.def"
	};

	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
		if (!strcmp(f->id, ids[i]))
			return true;
	}
	return false;
}

/* Costs paid once per worker come after warnings that cost nearly as much: those grow with the
 * run. */
static void put_off(struct findings *out)
{
	struct finding f;
	size_t i, k;

	for (i = out->n; i-- > 0;) {
		if (!paid_once(&out->v[i]))
			continue;
		for (k = i;
		     k + 1 < out->n && out->v[k + 1].severity == out->v[i].severity &&
		     out->v[k + 1].rank_s * 100 >= out->v[i].rank_s * LEAST_SCALING_PERCENT &&
		     !paid_once(&out->v[k + 1]);
		     k++)
			;
		f = out->v[i];
		memmove(&out->v[i], &out->v[i + 1], (k - i) * sizeof(f));
		out->v[k] = f;
	}
}

/* 0 or -ENOMEM. */
static int make_check(const struct check *c, const struct report *r, const struct costs *costs,
		      const struct kinds *kinds, struct findings *out)
{
	struct draft d = {.check = c, .costs = costs, .kinds = kinds, .arena = &out->arena};
	enum verdict verdict;

	d.f = (struct finding){.id = c->id, .severity = c->severity, .advice = c->advice};
	d.f.cost_s = d.f.gain_s = (double)NAN;
	d.f.of_s = r->facts->wall_time;
	verdict = c->make(r, &d);
	if (d.f.severity == FINDING_WARNING && !d.f.cost_is_least &&
	    d.f.cost_s * 100 < d.f.of_s * LEAST_WARNING_PERCENT)
		d.f.severity = FINDING_NOTE;
	out->checks++;
	return d.no_memory ? -ENOMEM : take(out, &d, verdict);
}

int findings_collect(const struct report *r, struct findings *out)
{
	struct costs costs;
	struct kinds kinds = {0};
	size_t i;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = costs_build(&costs, r->run);
	rc = rc ? rc : kinds_build(&kinds, r->run);
	for (i = 0; i < CHECKS && !rc; i++)
		rc = make_check(&checks[i], r, &costs, &kinds, out);
	costs_release(&costs);
	kinds_release(&kinds);
	if (rc) {
		findings_release(out);
		return rc;
	}
	leave_out(out);
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_cost);
	out->n -= out->left_out;
	put_off(out);
	return 0;
}

void findings_release(struct findings *f)
{
	free(f->v);
	free(f->gaps);
	free(f->idle_ids);
	arena_release(&f->arena);
	memset(f, 0, sizeof(*f));
}
