/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * groups.h - attempts in groups by a pointer: an interned name, a worker.
 *
 * Groups are found by a hash table, as there may be as many groups as attempts. `v` is in the order
 * of the first attempts. A zeroed struct is empty.
 */
#ifndef CREMA_COLLECTOR_METRICS_GROUPS_H
#define CREMA_COLLECTOR_METRICS_GROUPS_H

#include "collector/metrics/metrics.h"
#include "common/table.h"

struct group {
	const void *key;
	struct tally t;
	double max_wall; /* seconds; of those whose time is known */
};

struct groups {
	struct group *v;
	size_t n, cap;
	struct table table;
};

/* `c`: attempt_classes() of a. 0 or -ENOMEM. */
int groups_take(struct groups *groups, const void *key, const struct attempt *a,
		const struct classes *c);
/* NULL: no attempt had this key. */
const struct group *groups_find(const struct groups *groups, const void *key);
/* Pointers to all groups, sorted; NULL: no memory. The caller frees it. */
const struct group **groups_sorted(const struct groups *groups,
				   int (*order)(const void *, const void *));
void groups_release(struct groups *groups);
/* Frees allocated groups; NULL is allowed. */
void groups_free(struct groups *groups);
/* Longest wall time first. */
int groups_by_wall(const void *a, const void *b);

#endif
