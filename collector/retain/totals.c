/* SPDX-License-Identifier: BSD-3-Clause */
/* totals.c - see totals.h. */
#include "collector/retain/totals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/metrics/metrics.h"
#include "collector/model/footer.h"
#include "collector/runs/run_state.h"
#include "common/clock.h"
#include "common/dirs.h"
#include "common/framefile.h"
#include "version.h"

#define ATTEMPT_BYTES 512u /* in memory, approximately */

static int add_span(struct dropped_run *d, const char *name)
{
	const char **span;
	size_t i;

	for (i = 0; i < d->spans.n; i++) {
		if (d->spans.v[i] == name)
			return 0;
	}
	span = ARRAY_NEW(&d->spans);
	if (!span)
		return -ENOMEM;
	*span = name;
	return 0;
}

static const char *intern(struct model *m, const char *text)
{
	return model_text(m, (struct text){text, strlen(text)});
}

static int add_values(struct model *m, struct dropped_run *d, const struct facts *facts)
{
	struct dropped_value *v;
	size_t i;

	for (i = 0; i < metric_count; i++) {
		if (metric_table[i].kind == METRIC_TREE)
			continue;
		v = ARRAY_NEW(&d->values);
		if (!v)
			return -ENOMEM;
		v->id = metric_table[i].id;
		v->v = metric_table[i].num(facts);
		if (v->v.type == VALUE_TEXT) /* some belong to the facts */
			v->v.v.s = intern(m, v->v.v.s);
	}
	return 0;
}

int totals_make(struct model *to, const struct run *r, struct dropped_run *d, const char *why)
{
	struct facts facts;
	size_t i;
	int rc = facts_build(&facts, r);

	d->id = intern(to, r->id);
	d->kind = run_kind_name(r);
	d->why = why;
	d->by = CREMA_VERSION;
	d->plain = r->plain;
	d->start_ns = r->start > 0 ? (uint64_t)(r->start * 1e9) : 0;
	d->stop_ns = r->stop > 0 ? (uint64_t)(r->stop * 1e9) : 0;
	for (i = 0; i < r->attempts.n && !rc; i++) {
		if (r->attempts.v[i]->span)
			rc = add_span(d, intern(to, r->attempts.v[i]->span));
	}
	if (!rc)
		rc = add_values(to, d, &facts);
	d->state = run_state_name(facts.state.id);
	d->chunk_attempts = facts.chunks_all.attempts;
	facts_release(&facts);
	return rc ? rc : to->error;
}

/* Reading */

static bool is_same(const struct run *r, const struct run *surveyed)
{
	return r && !strcmp(r->id, surveyed->id) && r->plain == surveyed->plain &&
	       !text_order(r->first_span, surveyed->first_span);
}

struct reading {
	const struct runs_source *source;
	const struct runs *runs;
	totals_visitor take;
	void *arg;
};

static int read_batch(const struct reading *reading, const size_t *places, size_t n)
{
	const char **which = calloc(n, sizeof(*which));
	struct run **found = calloc(n, sizeof(*found));
	struct runs runs = {0};
	struct model m;
	size_t i;
	int rc = which && found ? 0 : -ENOMEM;

	model_init(&m);
	for (i = 0; i < n && !rc; i++)
		which[i] = reading->runs->v[places[i]].id;
	if (!rc)
		rc = runs_read(&m, &runs, reading->source, which, found, n);
	for (i = 0; i < n && rc >= 0; i++)
		rc = reading->take(reading->arg,
				   is_same(found[i], &reading->runs->v[places[i]]) ? found[i]
										   : NULL,
				   places[i]);
	runs_release(&runs);
	model_release(&m);
	free(which);
	free(found);
	return rc < 0 ? rc : 0;
}

/* Approximate memory; runs without spans to themselves are read one by one. */
static uint64_t run_bytes(const struct reading *reading, size_t place)
{
	uint64_t attempts = run_counted(&reading->runs->v[place]);

	return attempts ? attempts * ATTEMPT_BYTES : reading->source->whole_bytes;
}

int totals_read(const struct runs_source *source, const struct runs *runs, const size_t *places,
		size_t n, uint64_t late_ns, totals_visitor take, void *arg)
{
	const struct reading reading = {source, runs, take, arg};
	uint64_t began_ns = clock_boot_ns(), bytes;
	size_t from, to;
	int rc = 0;

	for (from = 0; from < n && !rc; from = to) {
		if (from && clock_boot_ns() - began_ns > late_ns)
			break;
		bytes = run_bytes(&reading, places[from]);
		for (to = from + 1; to < n; to++) {
			bytes += run_bytes(&reading, places[to]);
			if (bytes > source->whole_bytes)
				break;
		}
		rc = read_batch(&reading, places + from, to - from);
	}
	for (; from < n && !rc; from++)
		rc = take(arg, NULL, places[from]);
	return rc;
}

/* Updating */

struct update {
	const struct runs_source *source;
	struct model m;
	struct runs runs;
	ARRAY(size_t) missing; /* indexes in `runs` */
	struct buf frames;
};

static int see(void *arg, const struct run *r, size_t at, size_t n)
{
	struct update *u = arg;
	size_t *place;

	(void)n;
	if (r->totals)
		return dropped_pack(r->totals, CREMA_FRAME_RUN_TOTALS, &u->frames);
	if (r->plain || !r->first_span ||
	    run_until(r) + TOTALS_SETTLED_SECONDS > (double)u->source->now_ns / 1e9)
		return 0;
	place = ARRAY_NEW(&u->missing);
	if (!place)
		return -ENOMEM;
	*place = at;
	return 0;
}

static bool is_over(const struct run *r)
{
	struct run_state s;

	return !r->running && !run_state_find(r, &s) && s.id != RUN_STATE_RUNNING &&
	       s.id != RUN_STATE_STALLED;
}

static int write_file(const struct update *u)
{
	char folder[PATH_MAX];
	int rc = dirs_join(folder, sizeof(folder), u->source->dir, FOOTER_FOLDER);

	if (!rc) /* the child that writes footers may not have begun */
		rc = dirs_make_own(folder);
	return rc ? rc : framefile_replace(folder, RUN_TOTALS_FILE, "totals", 0, &u->frames);
}

/* Stored with the counts of the survey: if more records have come since, the totals are not used.
 * The file is written after each run, as reading all of an old journal takes long. */
static int take(void *arg, const struct run *r, size_t place)
{
	struct update *u = arg;
	struct dropped_run d = {0};
	int rc;

	if (!r || !is_over(r))
		return 0;
	rc = totals_make(&u->m, r, &d, "");
	d.counts.v = u->runs.v[place].counts.v;
	d.counts.n = u->runs.v[place].counts.n;
	if (!rc)
		rc = dropped_pack(&d, CREMA_FRAME_RUN_TOTALS, &u->frames);
	free(d.spans.v);
	free(d.values.v);
	if (rc == -EMSGSIZE)
		return 0;
	return rc ? rc : write_file(u);
}

int totals_update(const struct runs_source *source, uint64_t late_ns)
{
	struct runs_source survey = *source;
	struct update u = {.source = source, .frames = BUF_INIT};
	int rc;

	survey.survey_only = true;
	model_init(&u.m);
	rc = runs_read_each(&u.m, &u.runs, &survey, see, &u);
	if (rc >= 0)
		rc = totals_read(source, &u.runs, u.missing.v, u.missing.n, late_ns, take, &u);
	buf_release(&u.frames);
	free(u.missing.v);
	runs_release(&u.runs);
	model_release(&u.m);
	return rc;
}
