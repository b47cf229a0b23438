/* SPDX-License-Identifier: BSD-3-Clause */
/* task_kinds.c - sorts counted tasks by kind and wall time. */
#include "collector/findings/task_kinds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/sort.h"
#include "ids.h"

double attempt_seconds(const struct attempt *a)
{
	return (double)a->wall_ns / 1e9;
}

static bool is_taken(const struct attempt *a)
{
	return a->counted && a->known >> TASK_F_wall_ns & 1 && !attempt_is_unmeasured(a);
}

/* By wall time, then by prefix: 0 or -ENOMEM. */
static int sort(const struct run *run, struct numbered *v, size_t n)
{
	int rc = sort_numbered(v, n);
	size_t i;

	for (i = 0; i < n; i++)
		v[i].number = (uintptr_t)run->attempts.v[v[i].place]->prefix;
	return rc ? rc : sort_numbered(v, n);
}

int kinds_build(struct kinds *k, const struct run *run)
{
	struct numbered *v = calloc(run->attempts.n + 1, sizeof(*v));
	size_t i;

	*k = (struct kinds){.attempts = run->attempts.v};
	if (run->attempts.n > UINT32_MAX) {
		free(v);
		return -ENOMEM;
	}
	for (i = 0; v && i < run->attempts.n; i++) {
		if (is_taken(run->attempts.v[i]))
			v[k->n++] = (struct numbered){run->attempts.v[i]->wall_ns, {i}};
	}
	if (v && !sort(run, v, k->n))
		k->place = calloc(k->n + 1, sizeof(*k->place));
	for (i = 0; k->place && i < k->n; i++)
		k->place[i] = (uint32_t)v[i].place;
	free(v);
	return k->place ? 0 : -ENOMEM;
}

void kinds_release(struct kinds *k)
{
	free(k->place);
	memset(k, 0, sizeof(*k));
}

const struct attempt *kind_at(const struct kinds *k, size_t i)
{
	return k->attempts[k->place[i]];
}

size_t kind_count(const struct kinds *k, size_t first)
{
	const char *prefix = kind_at(k, first)->prefix;
	size_t n = 1;

	while (first + n < k->n && kind_at(k, first + n)->prefix == prefix)
		n++;
	return n;
}

double kind_median(const struct kinds *k, size_t first, size_t n)
{
	return attempt_seconds(kind_at(k, first + (n - 1) / 2));
}
