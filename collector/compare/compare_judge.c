/* SPDX-License-Identifier: BSD-3-Clause */
/* compare_judge.c - decides whether runs can be compared, which is best, and how they scale. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/compare/compare.h"
#include "collector/emit/emit_table.h"

static void refuse(struct comparison *c)
{
	const struct compared *r, *first = &c->run[0];
	char a[HUMAN_BYTES], b[HUMAN_BYTES];
	double events, other;
	size_t i;

	for (i = 0; i < c->n && !*c->refused; i++) {
		r = &c->run[i];
		events = compared_number(r, "total_events");
		other = compared_number(first, "total_events");
		if (!r->facts.chunks_all.attempts)
			snprintf(c->refused, sizeof(c->refused), "run %zu processed no chunks",
				 i + 1);
		else if (r->run->running)
			snprintf(c->refused, sizeof(c->refused), "run %zu is still running", i + 1);
		else if (isnan(events))
			snprintf(c->refused, sizeof(c->refused),
				 "the events of run %zu are unknown", i + 1);
		else if (isnan(r->rate))
			snprintf(c->refused, sizeof(c->refused),
				 "the wall time of run %zu is unknown", i + 1);
		else if (events != other)
			snprintf(c->refused, sizeof(c->refused),
				 "the work differs: run 1 processed %s events, run %zu %s",
				 human(value_real(other), AS_COUNT, a), i + 1,
				 human(value_real(events), AS_COUNT, b));
	}
}

static void look_at_content(struct comparison *c)
{
	double columns = compared_number(&c->run[0], "num_columns");
	size_t i;

	for (i = 1; i < c->n && !*c->content; i++) {
		if (c->run[i].content != c->run[0].content)
			snprintf(c->content, sizeof(c->content),
				 "runs 1 and %zu read their events from different files", i + 1);
		else if (compared_number(&c->run[i], "num_columns") != columns &&
			 !(isnan(columns) && isnan(compared_number(&c->run[i], "num_columns"))))
			snprintf(c->content, sizeof(c->content),
				 "runs 1 and %zu read different numbers of columns", i + 1);
	}
}

static double per_core(const struct compared *r)
{
	return r->rate / compared_number(r, "total_cores");
}

static void find_best(struct comparison *c)
{
	const struct compared *r;
	bool cores_known = true;
	size_t i;

	for (i = 0; i < c->n; i++) {
		r = &c->run[i];
		cores_known = cores_known && compared_number(r, "total_cores") > 0;
		if (!c->best || r->rate > c->best->rate) {
			c->next = c->best;
			c->best = r;
		} else if (!c->next || r->rate > c->next->rate) {
			c->next = r;
		}
	}
	for (i = 0; i < c->n && cores_known; i++) {
		r = &c->run[i];
		if (!c->best_per_core || per_core(r) > per_core(c->best_per_core))
			c->best_per_core = r;
	}
}

/* The class whose time per event grew most from the base run. */
static void name_cause(struct curve_point *p)
{
	double here, there, most = 0;
	int i;

	if (compared_unmeasured(p->run) || compared_unmeasured(p->base))
		return;
	for (i = 0; i <= COMPARE_IDLE; i++) {
		here = compared_class(p->run, i) / compared_number(p->run, "total_events");
		there = compared_class(p->base, i) / compared_number(p->base, "total_events");
		if (!(here - there > most))
			continue;
		most = here - there;
		p->grew = i;
		p->grew_seconds = value_real(most * 1e6);
	}
}

static int by_cores(const void *pa, const void *pb)
{
	const struct compared *a = ((const struct curve_point *)pa)->run;
	const struct compared *b = ((const struct curve_point *)pb)->run;
	double x = compared_number(a, "total_cores"), y = compared_number(b, "total_cores");

	return x < y ? -1 : x > y ? 1 : a->rate > b->rate ? -1 : a->rate < b->rate;
}

static int by_chunk(const void *pa, const void *pb)
{
	const struct compared *a = ((const struct curve_point *)pa)->run;
	const struct compared *b = ((const struct curve_point *)pb)->run;
	double x = compared_number(a, "num_chunks"), y = compared_number(b, "num_chunks");

	if (a->cores != b->cores)
		return a->cores < b->cores ? -1 : 1;
	return x > y ? -1 : x < y ? 1 : a->rate > b->rate ? -1 : a->rate < b->rate;
}

static bool alike(const struct compared *a, const struct compared *b, bool cores)
{
	if (cores)
		return a->cores == b->cores;
	return compared_number(a, "num_chunks") == compared_number(b, "num_chunks");
}

/*
 * Runs that are equal in one thing (chunks, or cores) and differ in the other, sorted. A run
 * without such a partner is not a point of the curve.
 */
static int points(struct comparison *c, bool chunks, struct curve_point **out, size_t *count)
{
	const struct compared *r;
	size_t i, k;

	*out = calloc(c->n, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	for (i = 0; i < c->n; i++) {
		r = &c->run[i];
		if (!r->cores)
			continue;
		for (k = 0; k < c->n; k++) {
			if (c->run[k].cores && alike(r, &c->run[k], chunks) &&
			    !alike(r, &c->run[k], !chunks))
				break;
		}
		if (k < c->n)
			(*out)[(*count)++] = (struct curve_point){.run = r, .grew = COMPARE_NONE};
	}
	if (*count)
		qsort(*out, *count, sizeof(**out), chunks ? by_chunk : by_cores);
	return 0;
}

/* Against the run with the fewest cores and the same chunks; the fastest if there are several. */
static void scale(struct comparison *c)
{
	struct curve_point *p;
	double speedup, ideal;
	size_t i, k;

	for (i = 0; i < c->scaling_count; i++) {
		p = &c->scaling[i];
		for (k = 0; !alike(c->scaling[k].run, p->run, false); k++)
			;
		p->base = c->scaling[k].run;
		speedup = p->run->rate / p->base->rate;
		ideal = compared_number(p->run, "total_cores") /
			compared_number(p->base, "total_cores");
		p->speedup = value_real(speedup);
		p->ideal = value_real(ideal);
		p->efficiency = value_real(speedup / ideal);
		if (p->run != p->base)
			name_cause(p);
	}
}

static void mark_best_chunks(struct comparison *c)
{
	struct curve_point *p, *best = NULL;
	size_t i;

	for (i = 0; i < c->chunks_count; i++) {
		p = &c->chunks[i];
		if (best && best->run->cores != p->run->cores)
			best->best = true;
		if (!best || best->run->cores != p->run->cores || p->run->rate > best->run->rate)
			best = p;
	}
	if (best)
		best->best = true;
}

int compare_judge(struct comparison *c)
{
	int rc = compare_functions(c);

	refuse(c);
	if (rc || *c->refused)
		return rc;
	look_at_content(c);
	find_best(c);
	rc = points(c, false, &c->scaling, &c->scaling_count);
	if (!rc)
		rc = points(c, true, &c->chunks, &c->chunks_count);
	if (rc)
		return rc;
	scale(c);
	mark_best_chunks(c);
	return 0;
}
