/* SPDX-License-Identifier: BSD-3-Clause */
/* run.c - one run's spans. */
#include "collector/model/runs.h"

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

size_t run_span_count(const struct run *r)
{
	return sizeof(r->spans) / sizeof(*r->spans) + r->more.n;
}

const char *run_span(const struct run *r, size_t i)
{
	const size_t first = sizeof(r->spans) / sizeof(*r->spans);

	return i < first ? r->spans[i] : r->more.v[i - first];
}
