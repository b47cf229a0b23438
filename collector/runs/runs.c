/* SPDX-License-Identifier: BSD-3-Clause */
/* runs.c - groups attempts into runs by their spans. */
#include "collector/runs/runs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collector/model/dropped.h"
#include "collector/model/selection.h"
#include "collector/runs/runs_consume.h"
#include "collector/runs/runs_plain.h"

/* The precision to which clocks of several hosts agree. */
#define ORDER_SECONDS 0.02

static int by_start(const void *pa, const void *pb)
{
	const struct run *a = pa, *b = pb;
	double x = time_or_0(a->start), y = time_or_0(b->start);

	if (x != y)
		return x < y ? -1 : 1;
	return strcmp(a->id, b->id);
}

static bool same_span(const void *item, const void *key)
{
	return ((const struct task_span *)item)->id == key;
}

static int push(struct attempts *list, struct attempt *a)
{
	struct attempt **at = ARRAY_NEW(list);

	if (!at)
		return -ENOMEM;
	*at = a;
	return 0;
}

static int span_take(struct task_span *s, struct attempt *a)
{
	if (!s->attempts.n) {
		s->begin = time_or_0(attempt_begin(a));
		s->lambdas = true;
		s->worker = a->worker;
		s->names_graphs = a->known >> TASK_F_consumes & 1;
	}
	s->end = fmax(s->end, fmax(time_or_0(attempt_begin(a)), time_or_0(attempt_end(a))));
	if (!a->prefix || strcmp(a->prefix, "lambda"))
		s->lambdas = false;
	if (attempt_is_chunk(a))
		s->chunks = true;
	if (a->flags & CREMA_TASK_PREPROCESSING)
		s->preprocessing = true;
	return push(&s->attempts, a);
}

/* Attempts are sorted by begin, and so are the resulting spans. */
static int collect_spans(struct model *m, struct task_spans *spans)
{
	struct table index = {0};
	struct task_span *s;
	struct attempt *a;
	size_t i, max = 0;
	int rc = runs_count_spans(m, &max);

	spans->v = calloc(max ? max : 1, sizeof(*spans->v)); /* fixed: the index points into it */
	if (!spans->v)
		return -ENOMEM;
	for (i = 0; i < m->attempts.n && !rc; i++) {
		a = m->attempts.v[i];
		if (!a->span || attempt_is_plain(a))
			continue;
		s = table_find(&index, hash_pair((uintptr_t)a->span, 1), same_span, a->span);
		if (!s) {
			s = &spans->v[spans->n++];
			s->id = a->span;
			s->part = span_part_find(m, a->span);
			s->users = s->part->users;
			s->leader = s->next = s;
			rc = table_add(&index, hash_pair((uintptr_t)a->span, 1), s);
		}
		if (!rc)
			rc = span_take(s, a);
	}
	table_release(&index);
	return rc;
}

static bool same_dataset_file(const void *item, const void *key)
{
	const struct attempt *a = item, *b = key;

	return a->dataset == b->dataset && a->filename == b->filename;
}

static uint64_t hash_dataset_file(const struct attempt *a)
{
	return hash_pair((uintptr_t)a->dataset, (uintptr_t)a->filename);
}

/* Whether the preprocessing `p` names every (dataset, file) of the run's chunks. */
static int covers(const struct task_span *p, const struct run *r)
{
	struct table set = {0};
	struct attempt *a;
	size_t i;
	int rc = 1;

	for (i = 0; i < p->attempts.n; i++) {
		a = p->attempts.v[i];
		if (!(a->flags & CREMA_TASK_PREPROCESSING) ||
		    table_find(&set, hash_dataset_file(a), same_dataset_file, a))
			continue;
		if (table_add(&set, hash_dataset_file(a), a)) {
			table_release(&set);
			return -ENOMEM;
		}
	}
	for (i = 0; i < r->attempts.n && rc; i++) {
		a = r->attempts.v[i];
		if (attempt_is_chunk(a) &&
		    !table_find(&set, hash_dataset_file(a), same_dataset_file, a))
			rc = 0;
	}
	table_release(&set);
	return rc;
}

static struct run *run_new(struct runs *runs, struct model *m, enum run_kind kind)
{
	struct run *r = ARRAY_NEW(runs);

	if (!r)
		return NULL;
	r->model = m;
	r->kind = kind;
	r->number = runs->n - 1;
	return r;
}

/* The first list is moved, not copied. */
static int run_take(struct run *r, struct task_span *s)
{
	const char **more;
	size_t i;
	int rc = 0;

	s->claimed = true;
	s->run = r->number;
	if (!run_has_span(r, s->id)) {
		more = ARRAY_NEW(&r->more);
		if (!more)
			return -ENOMEM;
		*more = s->id;
	}
	if (!r->attempts.n) {
		free(r->attempts.v);
		r->attempts = s->attempts;
		s->attempts = (struct attempts){0};
		return 0;
	}
	for (i = 0; i < s->attempts.n && !rc; i++)
		rc = push(&r->attempts, s->attempts.v[i]);
	return rc;
}

/* Also takes everything joined with it. */
static int run_take_all(struct run *r, struct task_span *s)
{
	struct task_span *each = s;
	int rc = 0;

	do {
		rc = each->claimed ? 0 : run_take(r, each);
		each = each->next;
	} while (each != s && !rc);
	return rc;
}

/*
 * DaskExecutor first sends the processor to the workers, as a lambda task. If that ends before the
 * chunks are submitted, Dask puts it into a separate span. It belongs to the chunks that follow.
 */
static struct task_span *find_scatter(const struct model *m, struct task_spans *spans, size_t i)
{
	struct task_span *s = &spans->v[i], *p;
	size_t j;

	if (span_kind(s))
		return s->scatter;
	if (s->names_graphs)
		return NULL;
	for (j = i; j > 0 && i - j < 4; j--) { /* older agents do not report it */
		p = &spans->v[j - 1];
		if (!p->claimed && p->lambdas && s->begin - p->begin <= SCATTER_SECONDS &&
		    spans_share_scheduler(p, s) && selection_joins(m, p->id, s->id))
			return p;
	}
	return NULL;
}

/* Agents that report what tasks consume name the graphs of Dask's own spans: a plain name is a span
 * that the user opened, which is a run. */
static bool is_users(const struct task_span *s)
{
	return s->part->users || (!span_kind(s) && s->names_graphs);
}

/* The latest that had ended when the chunks began. With older agents only its begin is known to be
 * earlier: its merges may be in the chunks' span. */
static int find_preprocessing(const struct model *m, struct task_spans *spans, size_t i,
			      const struct run *r, struct task_span **found)
{
	struct task_span *s = &spans->v[i], *p;
	size_t j;
	int rc;

	for (j = i; j > 0; j--) {
		p = &spans->v[j - 1];
		if (p->claimed || p->chunks || !p->preprocessing || is_users(p) ||
		    !spans_share_scheduler(p, s) ||
		    (span_kind(p) &&
		     (p->end > s->begin + ORDER_SECONDS || (*found && p->end < (*found)->end))) ||
		    !selection_joins(m, p->id, s->id))
			continue;
		rc = covers(p, r);
		if (rc < 0)
			return rc;
		if (rc)
			*found = p;
		if (rc && !span_kind(p))
			return 0;
	}
	return 0;
}

/* Whether any span joined with it preprocesses. */
static bool preprocesses(const struct task_span *s)
{
	const struct task_span *each = s->next;

	while (each != s && !each->preprocessing)
		each = each->next;
	return each->preprocessing;
}

/* Runs of coffea: each processing span with its preprocessing. */
static int group_processing(struct runs *runs, struct model *m, struct task_spans *spans, size_t i)
{
	struct task_span *s = &spans->v[i], *pre = NULL, *scatter = find_scatter(m, spans, i);
	struct run *r = run_new(runs, m, RUN_COFFEA);
	bool inside = preprocesses(s); /* the user opened the span */
	int rc;

	if (!r)
		return -ENOMEM;
	r->spans[0] = r->first_span = s->id;
	rc = run_take_all(r, s);
	if (!rc && !inside)
		rc = find_preprocessing(m, spans, i, r, &pre);
	if (!rc && scatter) {
		r->spans[2] = r->first_span = scatter->id;
		rc = run_take(r, scatter);
	}
	if (!rc && pre) {
		r->spans[1] = r->first_span = pre->id;
		rc = run_take_all(r, pre);
	}
	return rc;
}

static int group_rest(struct runs *runs, struct model *m, struct task_span *s)
{
	struct run *r = run_new(runs, m, preprocesses(s) ? RUN_PREPROCESSING : RUN_OTHER);

	if (!r)
		return -ENOMEM;
	r->spans[0] = r->first_span = s->id;
	return run_take_all(r, s);
}

static int group_spans(struct runs *runs, struct model *m, struct task_spans *spans)
{
	size_t i;
	int rc = spans_join(m, spans);

	for (i = 0; i < spans->n && !rc; i++) {
		if (spans->v[i].chunks && !spans->v[i].claimed)
			rc = group_processing(runs, m, spans, i);
	}
	for (i = 0; i < spans->n && !rc; i++) {
		if (!spans->v[i].claimed)
			rc = group_rest(runs, m, &spans->v[i]);
	}
	return rc;
}

/* Groups tasks without a span by gaps in time. */
static int group_gaps(struct runs *runs, struct model *m)
{
	struct run *r = NULL;
	struct attempt *a;
	double end = 0, chunk_end = 0;
	size_t i;

	for (i = 0; i < m->attempts.n; i++) {
		a = m->attempts.v[i];
		if (a->span)
			continue;
		if (!r || time_or_0(attempt_begin(a)) > end + RUNS_GAP_SECONDS ||
		    ((a->flags & CREMA_TASK_PREPROCESSING) && r->kind == RUN_COFFEA &&
		     time_or_0(attempt_begin(a)) > chunk_end)) {
			r = run_new(runs, m, RUN_OTHER);
			if (!r)
				return -ENOMEM;
			end = chunk_end = 0;
		}
		if (attempt_is_chunk(a)) {
			r->kind = RUN_COFFEA;
			chunk_end = fmax(chunk_end, time_or_0(attempt_end(a)));
		} else if ((a->flags & CREMA_TASK_PREPROCESSING) && r->kind == RUN_OTHER) {
			r->kind = RUN_PREPROCESSING;
		}
		end = fmax(end, time_or_0(attempt_end(a)));
		if (push(&r->attempts, a))
			return -ENOMEM;
	}
	return 0;
}

static void spans_release(struct task_spans *spans)
{
	size_t i;

	for (i = 0; i < spans->n; i++)
		free(spans->v[i].attempts.v);
	free(spans->v);
}

int runs_build(struct runs *runs, struct model *m)
{
	struct task_spans spans = {0};
	size_t i;
	int rc;

	memset(runs, 0, sizeof(*runs));
	rc = dropped_filter(m);
	if (rc)
		return rc;
	attempts_sort(m->attempts.v, m->attempts.n);
	rc = collect_spans(m, &spans);
	if (!rc)
		rc = group_spans(runs, m, &spans);
	if (!rc)
		rc = group_gaps(runs, m);
	if (!rc)
		rc = runs_group_plain(runs, m);
	table_release(&m->attempt_table); /* no more feeding */
	m->recent_page = NULL;
	arena_release(&m->page_arena);
	model_process_lives(m);
	for (i = 0; i < runs->n && !rc; i++)
		rc = run_settle(&runs->v[i]);
	if (!rc)
		runs_tell_sources(runs, &spans);
	spans_release(&spans);
	if (!rc && runs->n)
		qsort(runs->v, runs->n, sizeof(*runs->v), by_start);
	return rc ? rc : runs_tell_company(runs);
}

void runs_release(struct runs *runs)
{
	size_t i;

	for (i = 0; i < runs->n; i++) {
		free(runs->v[i].attempts.v);
		free(runs->v[i].workers.v);
		free(runs->v[i].places.v);
		free(runs->v[i].more.v);
		free(runs->v[i].counts.v);
	}
	free(runs->v);
	memset(runs, 0, sizeof(*runs));
}

const char *run_kind_name(const struct run *r)
{
	static const char *const names[] = {"coffea", "preprocessing", "other"};

	return names[r->kind];
}
