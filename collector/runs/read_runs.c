/* SPDX-License-Identifier: BSD-3-Clause */
/* read_runs.c - reads some runs of a journal completely. */
#include "collector/runs/read_runs.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/dirs.h"
#include "common/framefile.h"

/* A selected run, identified by its processing span; without its own span, by its id. */
struct selected_run {
	const char *span;
	char id[RUN_ID_BYTES];
	struct run_others others;
};

/* Its end is estimated: a survey has not seen all of its attempts. */
static int want_times(struct selection *s, const struct run *r)
{
	uint64_t from = r->start > 0 ? (uint64_t)(r->start * 1e9) : 0;
	uint64_t to = r->stop > 0 ? (uint64_t)(r->stop * 1e9) : UINT64_MAX / 2;
	uint64_t until = (uint64_t)(run_surveyed_until(s, r) * 1e9);

	to = until > to ? until : to;
	if (s->block_from_ns && s->block_from_ns < from)
		from = s->block_from_ns;
	if (s->block_to_ns > to)
		to = s->block_to_ns;
	from -= from > SELECTION_MARGIN_NS ? SELECTION_MARGIN_NS : from;
	to += r->others.next_start < (double)INFINITY ? SELECTION_MARGIN_NS : SELECTION_LATEST_NS;
	return ranges_add(&s->times, from, to, SIZE_MAX);
}

/* Stores what worker_utc_ns() needs of each worker: its clocks after closing. */
static int keep_clocks(struct selection *s, const struct model *m)
{
	const struct worker *w;
	struct worker *clock;
	size_t i;

	for (i = 0; i < m->workers.n && s->clocks.n < m->workers.n; i++) {
		w = m->workers.v[i];
		clock = arena_get(&s->wanted_arena, sizeof(*clock));
		if (!clock || table_add(&s->clocks, hash_bytes(1, w->id, sizeof(w->id)), clock))
			return -ENOMEM;
		memcpy(clock->id, w->id, sizeof(w->id));
		clock->clocks.n = w->clocks.n;
		clock->clocks.v =
			arena_get(&s->wanted_arena, w->clocks.n * sizeof(*w->clocks.v) + 1);
		if (!clock->clocks.v)
			return -ENOMEM;
		if (w->clocks.n)
			memcpy(clock->clocks.v, w->clocks.v, w->clocks.n * sizeof(*w->clocks.v));
	}
	return 0;
}

static int want(struct selection *s, const struct run *r, struct selected_run *w)
{
	size_t i;
	int rc = want_times(s, r);

	if (!rc)
		rc = keep_clocks(s, r->model);
	s->all = s->all || r->plain || !r->first_span;

	memcpy(w->id, r->id, sizeof(w->id));
	w->others = r->others;
	if (!r->plain && r->spans[0]) {
		w->span = selection_keep(s, r->spans[0]);
		rc = w->span ? rc : -ENOMEM;
	}
	for (i = 0; i < run_span_count(r) && !rc; i++)
		rc = run_span(r, i) ? selection_want(s, w, run_span(r, i)) : 0;
	return rc;
}

static bool run_matches(const struct run *r, const struct selected_run *w)
{
	if (w->span)
		return !r->plain && r->spans[0] && !strcmp(r->spans[0], w->span);
	return (r->plain || !r->spans[0]) && !strcmp(r->id, w->id);
}

/* None of its spans and times belong to a selected run. */
static bool is_skipped(const struct selection *s, const struct selection_file *f)
{
	const struct sampled *at;
	uint64_t from, to;
	size_t i, k;

	if (!f->footer)
		return false;
	for (i = 0; i < f->spans.n; i++) {
		if (selection_wants(s, (struct text){f->spans.v[i], strlen(f->spans.v[i])}))
			return false;
	}
	for (i = 0; i < f->sampled.n; i++) {
		at = &f->sampled.v[i];
		if (!at->to_boot_ns)
			continue;
		from = worker_utc_ns(at->worker, at->from_boot_ns);
		to = worker_utc_ns(at->worker, at->to_boot_ns);
		if (!from)
			return false;
		for (k = 0; k < s->times.n; k++) {
			if (from < s->times.v[k].to && to > s->times.v[k].from)
				return false;
		}
	}
	return true;
}

static int choose_segments(struct selection *s)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < s->files.n && !s->all && !rc; i++) {
		if (is_skipped(s, &s->files.v[i]))
			rc = selection_skip(s, s->files.v[i].path);
	}
	return rc;
}

static int survey(struct selection *s, const struct runs_source *source, const char *const *which,
		  struct selected_run *wanted, size_t n, struct run_fits *fits)
{
	struct runs runs = {0};
	struct run *r;
	struct model m;
	size_t i;
	int rc;

	model_init(&m);
	m.selection = s;
	rc = runs_survey(&m, &runs,
			 &(struct runs_source){.dir = source->dir,
					       .more = source->more,
					       .pass_over = source->pass_over});
	for (i = 0; i < n && rc >= 0; i++) {
		r = runs_find(&runs, which[i]);
		if (!r)
			runs_fit(&runs, which[i], fits);
		if (r && runs_means_last(which[i]))
			runs_tell_others(&runs, r);
		if (r && want(s, r, &wanted[i]))
			rc = -ENOMEM;
	}
	if (rc >= 0 && choose_segments(s))
		rc = -ENOMEM;
	runs_release(&runs);
	model_release(&m);
	selection_restart(s);
	return rc;
}

/* The second reading. */
static int read_wanted(struct model *m, struct runs *runs, const struct runs_source *source,
		       struct selection *s, const struct selected_run *wanted, struct run **found,
		       size_t n)
{
	size_t i, k;
	int rc;

	s->pass = SELECTION_RUNS;
	m->selection = s;
	rc = runs_survey(m, runs, source);
	m->selection = NULL;
	for (i = 0; i < n && rc >= 0; i++) {
		found[i] = NULL;
		for (k = 0; k < runs->n && *wanted[i].id && !found[i]; k++)
			found[i] = run_matches(&runs->v[k], &wanted[i]) ? &runs->v[k] : NULL;
		if (*wanted[i].id && !found[i])
			rc = -ESTALE; /* segments were just removed */
		if (found[i])
			found[i]->others = wanted[i].others;
	}
	return rc;
}

static void forget(struct selection *s)
{
	selection_restart(s);
	table_release(&s->wanted);
	table_release(&s->clocks);
	table_release(&s->skipped);
	arena_release(&s->wanted_arena);
	ranges_release(&s->times);
	memset(s, 0, sizeof(*s));
}

static int read_named(struct model *m, struct runs *runs, const struct runs_source *source,
		      const char *const *which, struct run **found, size_t n)
{
	struct selected_run *wanted = calloc(n, sizeof(*wanted));
	struct selection s = {.pass = SELECTION_SURVEY,
			      .block_from_ns = source->block_from_ns,
			      .block_to_ns = source->block_to_ns};
	struct run_fits fits = {0};
	int rc = wanted ? survey(&s, source, which, wanted, n, &fits) : -ENOMEM;

	if (rc >= 0)
		rc = read_wanted(m, runs, source, &s, wanted, found, n);
	m->fits = fits;
	forget(&s);
	free(wanted);
	return rc;
}

int runs_read(struct model *m, struct runs *runs, const struct runs_source *source,
	      const char *const *which, struct run **found, size_t n)
{
	int rc, tries = RUNS_TRIES;
	size_t i;

	if (source_is_long(source)) {
		while ((rc = read_named(m, runs, source, which, found, n)) == -ESTALE && --tries)
			runs_start_over(m, runs);
		return rc;
	}
	rc = runs_survey(m, runs, source);
	for (i = 0; i < n && rc >= 0; i++) {
		found[i] = runs_find(runs, which[i]);
		if (!found[i])
			runs_fit(runs, which[i], &m->fits);
		if (found[i] && runs_means_last(which[i]))
			runs_tell_others(runs, found[i]);
	}
	return rc;
}

/* Parts */

static uint64_t folder_bytes(const char *dir, const char *sub)
{
	char folder[PATH_MAX];
	uint64_t bytes = 0;

	if (!dirs_join(folder, sizeof(folder), dir, sub))
		framefile_sizes(folder, &bytes);
	return bytes;
}

static uint64_t dir_bytes(const char *dir)
{
	return folder_bytes(dir, ".") + folder_bytes(dir, "journal");
}

bool source_is_long(const struct runs_source *source)
{
	const char *const *more = source->more;
	uint64_t bytes = dir_bytes(source->dir);

	for (; more && *more; more++)
		bytes += dir_bytes(*more);
	return bytes >= (source->whole_bytes ? source->whole_bytes : RUNS_WHOLE_BYTES);
}

void runs_start_over(struct model *m, struct runs *runs)
{
	runs_release(runs);
	model_release(m);
	model_init(m);
}

int runs_survey(struct model *m, struct runs *runs, const struct runs_source *source)
{
	int n, rc;

	m->pass_over = source->pass_over;
	n = model_read_dirs(m, source->dir, source->more);
	rc = n < 0 ? n : model_close(m, source->now_ns);
	if (!rc)
		rc = runs_build(runs, m);
	return rc ? rc : n;
}
