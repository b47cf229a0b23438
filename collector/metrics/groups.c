/* SPDX-License-Identifier: BSD-3-Clause */
/* groups.c - one tally per pointer. */
#include "collector/metrics/groups.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct group_key {
	const struct groups *groups;
	const void *key;
};

/* The table holds indexes, from 1, as the array moves. */
static bool same_key(const void *item, const void *key)
{
	const struct group_key *w = key;

	return w->groups->v[(uintptr_t)item - 1].key == w->key;
}

int groups_take(struct groups *groups, const void *key, const struct attempt *a,
		const struct classes *c)
{
	struct group_key wanted = {groups, key};
	uint64_t hash = hash_pair((uint64_t)(uintptr_t)key, 0);
	uintptr_t place = (uintptr_t)table_find(&groups->table, hash, same_key, &wanted);
	struct group *g;

	if (!place) {
		g = ARRAY_NEW(groups);
		place = groups->n;
		if (!g || table_add(&groups->table, hash, (void *)place))
			return -ENOMEM;
		g->key = key;
	}
	g = &groups->v[place - 1];
	tally_take(&g->t, a, c);
	g->max_wall = fmax(g->max_wall, value_number(c->wall, NULL));
	return 0;
}

const struct group *groups_find(const struct groups *groups, const void *key)
{
	struct group_key wanted = {groups, key};
	uintptr_t place = (uintptr_t)table_find(
		&groups->table, hash_pair((uint64_t)(uintptr_t)key, 0), same_key, &wanted);

	return place ? &groups->v[place - 1] : NULL;
}

const struct group **groups_sorted(const struct groups *groups,
				   int (*order)(const void *, const void *))
{
	const struct group **v = calloc(groups->n + 1, sizeof(*v));
	size_t i;

	for (i = 0; v && i < groups->n; i++)
		v[i] = &groups->v[i];
	if (v && groups->n)
		qsort(v, groups->n, sizeof(*v), order);
	return v;
}

void groups_release(struct groups *groups)
{
	free(groups->v);
	table_release(&groups->table);
}

void groups_free(struct groups *groups)
{
	if (groups)
		groups_release(groups);
	free(groups);
}

int groups_by_wall(const void *a, const void *b)
{
	double p = (*(const struct group *const *)a)->t.wall;
	double q = (*(const struct group *const *)b)->t.wall;

	return p > q ? -1 : p < q;
}
