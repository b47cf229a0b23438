/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * history.h - what a worker's totals were at several times: the differences are what it did
 * between.
 *
 * Agents send TOTALS about each second; they hold the work of tasks under way. A point is what one
 * of them said of the series below. Points are kept by cells of time: of each cell the latest one.
 * When a model has more than HISTORY_POINTS, its cells become twice as long. As the numbers only
 * add up, this costs resolution, never a byte. What is kept does not depend on the order of
 * arrival.
 */
#ifndef CREMA_COLLECTOR_MODEL_HISTORY_H
#define CREMA_COLLECTOR_MODEL_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTORY_POINTS (1u << 16) /* over all workers: 11 MiB, half as much more while reading */
#define HISTORY_CELL_SHIFT 28	  /* the first cells: 2^28 ns, a quarter of a second */

/*
 * The layers of contract/counters.def, in bytes, and then its times, in nanoseconds of tasks.
 * from: ALL what tasks did and what threads without a task did; OWN and POOL the tasks' own
 * threads' and pool threads' time; PROCESS the whole process by the kernel's account. PROCESS and
 * both cpu rows come with the snapshots that the worker takes of itself, twice a second if its
 * event loop is not held up.
 */
#define HISTORY_PLAIN(SERIES, id, name) SERIES(name, OWN, id)
#define HISTORY_ESTIMATED(SERIES, id, name) SERIES(name, OWN, id)
#define HISTORY_CPU(SERIES, id, name) SERIES(name, OWN, id) SERIES(pool_##name, POOL, id)

enum history_series {
#define LAYER(id, count, ...) HISTORY_##count,
#include "counters.def"
	HISTORY_LAYERS,
	HISTORY_LAYERS_END_ = HISTORY_LAYERS - 1,
#define SERIES(id, from, member) HISTORY_##id,
#define TIME(id, name, column, ...) HISTORY_##column(SERIES, id, name)
#include "counters.def"
#undef SERIES
	HISTORY_SERIES
};

struct history_point {
	uint64_t boot_ns;
	uint64_t snapshot_ns; /* when the worker's own snapshot was taken; 0: not told */
	uint32_t known;	      /* bit HISTORY_x */
	uint64_t v[HISTORY_SERIES];
};

struct history {
	struct history_point *v; /* by time, once settled */
	size_t n, cap;
};

struct model;
struct totals;

/* The name of a series, and whether it is of times rather than bytes. */
const char *history_name(enum history_series s);
bool history_is_class(enum history_series s);
/* Whether it comes with the worker's snapshots. */
bool history_is_sampled(enum history_series s);

/* Takes the totals as a point: 0 or -ENOMEM. */
int history_add(struct model *m, struct history *h, const struct totals *t, uint64_t snapshot_ns);
/* Sorts all workers' points, and makes the cells longer until there are no more than allowed. */
void history_thin(struct model *m);

#endif
