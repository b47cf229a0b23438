/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * groups.h - attempts in groups by a pointer: an interned name, a worker.
 *
 * Finding a group is a look into a table, as there may be as many groups as attempts. `v` is in the
 * order of the first attempts and may be sorted when all have been taken. A zeroed struct is empty.
 */
#ifndef COLLECTOR_METRICS_GROUPS_H
#define COLLECTOR_METRICS_GROUPS_H

#include "collector/metrics/metrics.h"
#include "collector/model/model_table.h"

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

/* 0 or -ENOMEM. */
int groups_take(struct groups *groups, const void *key, const struct attempt *a);
void groups_release(struct groups *groups);
/* The longest wall time first; for qsort() of `v`. */
int groups_by_wall(const void *a, const void *b);

#endif
