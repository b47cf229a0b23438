/* SPDX-License-Identifier: BSD-3-Clause */
/* run_totals.c - see run_totals.h. */
#include "collector/runs/run_totals.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "collector/model/footer.h"
#include "common/dirs.h"
#include "common/framefile.h"
#include "version.h"

static int by_id(const void *pa, const void *pb)
{
	const struct dropped_run *a = *(struct dropped_run *const *)pa;
	const struct dropped_run *b = *(struct dropped_run *const *)pb;

	return strcmp(a->id, b->id);
}

static void read_dir(struct model *m, const char *dir)
{
	char folder[PATH_MAX], path[PATH_MAX];

	if (!dirs_join(folder, sizeof(folder), dir, FOOTER_FOLDER) &&
	    !dirs_join(path, sizeof(path), folder, RUN_TOTALS_FILE))
		framefile_read(path, model_feed, m, NULL);
}

/* If two collectors have records of a run, the totals of neither have the right counts. */
int run_totals_read(struct model *m, const char *dir, const char *const *more)
{
	read_dir(m, dir);
	for (; more && *more; more++)
		read_dir(m, *more);
	if (m->totals.n)
		qsort(m->totals.v, m->totals.n, sizeof(*m->totals.v), by_id);
	return m->error;
}

static int count_spans(struct selection *s, struct run *r)
{
	const struct seen_span *seen;
	struct span_count *c;
	const char *span;
	size_t i, first, last;

	for (i = 0; i < run_span_count(r); i++) {
		span = run_span(r, i);
		seen = span ? selection_span(s, span) : NULL;
		if (!seen)
			continue;
		first = s->files.v[seen->first_file].segment;
		last = s->files.v[seen->last_file].segment;
		if (!r->counts.n || first < r->first_segment)
			r->first_segment = first;
		if (!r->counts.n || last > r->last_segment)
			r->last_segment = last;
		c = ARRAY_NEW(&r->counts);
		if (!c)
			return -ENOMEM;
		*c = (struct span_count){span, seen->begun, seen->ended};
	}
	return 0;
}

uint64_t run_counted(const struct run *r)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < r->counts.n; i++)
		n += r->counts.v[i].begun > r->counts.v[i].ended ? r->counts.v[i].begun
								 : r->counts.v[i].ended;
	return n;
}

static bool has_count(const struct dropped_run *d, const struct span_count *c)
{
	size_t i;

	for (i = 0; i < d->counts.n; i++) {
		if (d->counts.v[i].span == c->span)
			return d->counts.v[i].begun == c->begun && d->counts.v[i].ended == c->ended;
	}
	return false;
}

static bool is_of(const struct dropped_run *d, const struct run *r)
{
	size_t i;

	if (!d->state || !d->by || strcmp(d->by, CREMA_VERSION) || d->counts.n != r->counts.n ||
	    !r->counts.n)
		return false;
	for (i = 0; i < r->counts.n; i++) {
		if (!has_count(d, &r->counts.v[i]))
			return false;
	}
	return true;
}

int run_totals_find(struct selection *s, struct runs *runs)
{
	const struct dropped_run *at, *const *found;
	struct model *m;
	struct run *r;
	size_t i;
	int rc = 0;

	for (i = 0; i < runs->n && !rc; i++) {
		r = &runs->v[i];
		m = r->model;
		r->until = run_surveyed_until(s, r);
		rc = count_spans(s, r);
		if (r->plain || !r->first_span || !m->totals.n)
			continue;
		at = &(struct dropped_run){.id = r->id};
		found = bsearch(&at, m->totals.v, m->totals.n, sizeof(*m->totals.v), by_id);
		r->totals = found && is_of(*found, r) ? *found : NULL;
	}
	return rc;
}

struct dropped_run *run_totals_take(struct model *m, const struct dropped_run *totals)
{
	struct dropped_run *d = NULL;
	size_t i, kept = 0;

	for (i = 0; i < m->totals.n; i++) {
		if (m->totals.v[i] == totals)
			d = m->totals.v[i];
		else
			m->totals.v[kept++] = m->totals.v[i];
	}
	m->totals.n = kept;
	return d;
}
