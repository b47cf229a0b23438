/* SPDX-License-Identifier: BSD-3-Clause */
/* task_kinds.c - sorts counted tasks by kind and wall time. */
#include "collector/findings/task_kinds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"

double attempt_seconds(const struct attempt *a)
{
	return (double)a->wall_ns / 1e9;
}

static int by_kind(const void *pa, const void *pb)
{
	const struct attempt *a = *(const struct attempt *const *)pa;
	const struct attempt *b = *(const struct attempt *const *)pb;

	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	if (a->wall_ns != b->wall_ns)
		return a->wall_ns < b->wall_ns ? -1 : 1;
	return 0;
}

int kinds_build(struct kinds *k, const struct run *run)
{
	const struct attempt *a, **at;
	size_t i;

	memset(k, 0, sizeof(*k));
	for (i = 0; i < run->attempts.n; i++) {
		a = run->attempts.v[i];
		if (!a->counted || !((a->known >> TASK_F_wall_ns) & 1) ||
		    (a->flags & (CREMA_TASK_ASYNC | CREMA_TASK_ELSEWHERE)))
			continue;
		at = ARRAY_NEW(k);
		if (!at)
			return -ENOMEM;
		*at = a;
	}
	if (k->n)
		qsort(k->v, k->n, sizeof(*k->v), by_kind);
	return 0;
}

void kinds_release(struct kinds *k)
{
	free(k->v);
	memset(k, 0, sizeof(*k));
}

size_t kind_count(const struct kinds *k, size_t first)
{
	size_t n = 1;

	while (first + n < k->n && k->v[first + n]->prefix == k->v[first]->prefix)
		n++;
	return n;
}

double kind_median(const struct kinds *k, size_t first, size_t n)
{
	return attempt_seconds(k->v[first + (n - 1) / 2]);
}
