/* SPDX-License-Identifier: BSD-3-Clause */
/* check_columns.c - columns that should be read ahead, and those read ahead without use. */
#include <math.h>
#include <string.h>

#include "collector/findings/check.h"

#define MOST_NAMES 60 /* in the list to paste */

static double n_of(struct value v)
{
	return value_number(v, NULL);
}

static bool same_column(const struct column_sum *a, const struct column_sum *b)
{
	return a->column == b->column && a->tree == b->tree;
}

/* A column that coffea read with separate requests. */
static bool read_alone(const struct column_sum *s)
{
	return s->kind == COLUMN_ONE && n_of(s->calls) > 0 && n_of(s->requests) > 0 &&
	       !(n_of(s->preload_tasks) > 0);
}

struct alone {
	double requests, chunks, wait_min_ns, wait_ns;
	size_t columns;
	const char *names; /* each once */
};

/* Whether an earlier row has the same column (or dataset) and was also read alone. */
static bool seen(const struct read_columns *c, size_t i, bool dataset)
{
	for (size_t k = 0; k < i; k++) {
		const struct column_sum *s = c->v.v[k];

		if (read_alone(s) &&
		    (dataset ? s->dataset == c->v.v[i]->dataset : same_column(s, c->v.v[i])))
			return true;
	}
	return false;
}

/* The number of tasks that read most of the dataset's columns: one request each remains. */
static double chunks_of(const struct read_columns *c, const char *dataset)
{
	double most = 0;

	for (size_t i = 0; i < c->v.n; i++)
		if (read_alone(c->v.v[i]) && c->v.v[i]->dataset == dataset)
			most = fmax(most, n_of(c->v.v[i]->tasks));
	return most;
}

static bool is_known(const struct column_sum *s)
{
	return s->kind != COLUMN_ONE ||
	       (s->calls.type != VALUE_NULL && s->requests.type != VALUE_NULL &&
		s->tasks.type != VALUE_NULL && s->preload_tasks.type != VALUE_NULL &&
		s->network_wait_ns.type != VALUE_NULL);
}

static void take_alone(const struct read_columns *c, size_t i, struct alone *a, struct draft *d)
{
	const struct column_sum *s = c->v.v[i];

	a->requests += n_of(s->requests);
	a->wait_ns += n_of(s->network_wait_ns);
	if (s->wait_min_ns.type != VALUE_NULL)
		a->wait_min_ns = fmin(a->wait_min_ns, n_of(s->wait_min_ns));
	if (!seen(c, i, true))
		a->chunks += chunks_of(c, s->dataset);
	if (seen(c, i, false))
		return;
	if (a->columns++ < MOST_NAMES)
		a->names = draft_list(d, a->names, s->column);
}

enum verdict finding_preload_columns(const struct report *r, struct draft *d)
{
	const struct read_columns *c = &r->columns;
	double waited = n_of(tally_class(&r->facts->all, CREMA_T_network_wait));
	double wall = n_of(tally_wall(&r->facts->all)), saved_s, weight;
	struct alone a = {.wait_min_ns = INFINITY, .names = ""};

	if (!c->v.n)
		return CHECK_IDLE;
	for (size_t i = 0; i < c->v.n; i++) {
		if (!is_known(c->v.v[i]))
			return draft_unknown(d, "read_columns");
		if (read_alone(c->v.v[i]))
			take_alone(c, i, &a, d);
	}
	if (!a.columns || !(a.requests > a.chunks) || !isfinite(a.wait_min_ns))
		return CHECK_QUIET;
	saved_s = (a.requests - a.chunks) * a.wait_min_ns / 1e9;
	if (!reaches(saved_s, wall, d->check->first, d->check->second))
		return CHECK_QUIET;
	weight = saved_s / wall;
	draft_evidence(d, "columns", value_uint(a.columns), "columns");
	draft_evidence(d, "requests", value_real(a.requests), "requests");
	draft_evidence(d, "requests_ahead", value_real(a.chunks), "requests");
	draft_evidence(d, "shortest_wait_seconds", value_real(a.wait_min_ns / 1e9), "s");
	draft_evidence(d, "columns_wait_seconds", value_real(a.wait_ns / 1e9), "s");
	draft_evidence(d, "saved_seconds", value_real(saved_s), "s");
	draft_sentence(d,
		       "%s columns took %s requests, one after the other, and tasks waited %s for "
		       "them; read ahead, %s requests would do, which saves at least %s at this "
		       "latency (%s)",
		       draft_human(d, value_uint(a.columns), AS_COUNT),
		       draft_human(d, value_real(a.requests), AS_COUNT),
		       draft_human(d, value_real(a.wait_ns / 1e9), AS_SECONDS),
		       draft_human(d, value_real(a.chunks), AS_COUNT),
		       draft_human(d, value_real(saved_s), AS_SECONDS),
		       draft_human(d, value_real(a.wait_min_ns / 1e9), AS_SECONDS));
	draft_advise(d, "Give each dataset of the fileset \"preload\": [%s%s", a.names,
		     a.columns > MOST_NAMES ? ", ...] (all names: --show columns)" : "].");
	draft_cost(d, cost_part(a.wait_ns / 1e9, waited, d->costs->class_s[CREMA_T_network_wait]));
	saved_s = cost_part(saved_s, waited, d->costs->class_s[CREMA_T_network_wait]);
	if (isfinite(saved_s))
		draft_gain(d, saved_s, "at least %s",
			   draft_human(d, value_real(saved_s), AS_SECONDS));
	return draft_found(d, weight);
}

/* Read ahead in some dataset, but used in none. */
static bool in_vain(const struct read_columns *c, const struct column_sum *s)
{
	bool ahead = false;

	for (size_t i = 0; i < c->v.n; i++) {
		const struct column_sum *one = c->v.v[i];

		if (one->kind != COLUMN_ONE || !same_column(one, s))
			continue;
		ahead |= n_of(one->preload_tasks) > 0;
		if (n_of(one->calls) > 0)
			return false;
	}
	return ahead;
}

enum verdict finding_unused_columns(const struct report *r, struct draft *d)
{
	const struct read_columns *c = &r->columns;
	double unused = 0, all = 0;
	const char *names = "";
	size_t columns = 0, ahead = 0, i, k;

	for (i = 0; i < c->v.n; i++) {
		const struct column_sum *s = c->v.v[i];

		if (s->kind == COLUMN_REST)
			continue;
		if (s->basket_bytes.type == VALUE_NULL || s->preload_tasks.type == VALUE_NULL)
			return draft_unknown(d, "read_columns");
		all += n_of(s->basket_bytes);
		ahead += n_of(s->preload_tasks) > 0;
		if (s->kind != COLUMN_ONE || !in_vain(c, s))
			continue;
		unused += n_of(s->basket_bytes);
		for (k = 0; k < i && !(c->v.v[k]->kind == COLUMN_ONE && same_column(c->v.v[k], s));)
			k++;
		if (k == i && columns++ < MOST_NAMES)
			names = draft_list(d, names, s->column);
	}
	if (!ahead)
		return CHECK_IDLE;
	if (!reaches(unused, all, d->check->first, d->check->second))
		return CHECK_QUIET;
	draft_evidence(d, "columns", value_uint(columns), "columns");
	draft_evidence(d, "unused_bytes", value_real(unused), "bytes");
	draft_evidence(d, "basket_bytes", value_real(all), "bytes");
	draft_evidence(d, "percent", value_real(unused / all * 100), "%");
	draft_sentence(
		d, "%s column%s read ahead and never used: %s, %s of the bytes of all columns",
		draft_human(d, value_uint(columns), AS_COUNT), columns == 1 ? " was" : "s were",
		draft_human(d, value_real(unused), AS_BYTES), draft_percent(d, unused / all * 100));
	draft_advise(d, "Take them off the preload list: %s%s.", names,
		     columns > MOST_NAMES ? ", ... (all names: --show columns)" : "");
	return draft_found(d, unused / all);
}
