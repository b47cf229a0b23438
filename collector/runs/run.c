/* SPDX-License-Identifier: BSD-3-Clause */
/* run.c - one run's spans. */
#include "collector/model/selection.h"
#include "collector/runs/runs.h"

bool attempt_is_chunk(const struct attempt *a)
{
	return (a->flags & CREMA_TASK_CHUNK) && !(a->flags & CREMA_TASK_MERGE);
}

bool run_has_span(const struct run *r, const char *span)
{
	size_t i;

	for (i = 0; span && i < run_span_count(r); i++) {
		if (run_span(r, i) == span)
			return true;
	}
	return false;
}

bool run_has_dask_span(const struct run *r, const char *span)
{
	size_t i;

	for (i = 0; span && i < run_span_count(r); i++) {
		if (run_span(r, i) && span_part_span(r->model, run_span(r, i)) == span)
			return true;
	}
	return false;
}

int run_key_order(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return a < b ? -1 : a > b;
}

size_t run_span_count(const struct run *r)
{
	return sizeof(r->spans) / sizeof(*r->spans) + r->more.n;
}

const char *run_span(const struct run *r, size_t i)
{
	const size_t first = sizeof(r->spans) / sizeof(*r->spans);

	return i < first ? r->spans[i] : r->more.v[i - first];
}

double run_surveyed_until(struct selection *s, const struct run *r)
{
	const struct model *m = r->model;
	uint64_t until = 0, end_ns;
	size_t i, k;

	for (i = 0; i < run_span_count(r); i++) {
		if (!run_span(r, i) || !selection_span(s, run_span(r, i)))
			continue;
		for (k = 0; k < m->workers.n; k++) {
			if (!selection_end(s, run_span(r, i), m->workers.v[k], &end_ns))
				continue;
			end_ns = worker_utc_ns(m->workers.v[k], end_ns);
			until = end_ns > until ? end_ns : until;
		}
	}
	return (double)until / 1e9;
}
