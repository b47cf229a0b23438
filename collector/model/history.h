/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * history.h - a worker's totals at several times; the differences are what it did in between.
 *
 * Agents send TOTALS about each second; they include the work of running tasks. A point holds
 * the series below from one such message. Points are kept by cells of time: the latest one of
 * each cell. When a model has more than HISTORY_POINTS, its cells double in length. As the
 * numbers are cumulative, this costs resolution, never a byte. The result does not depend on
 * the order of arrival.
 */
#ifndef CREMA_COLLECTOR_MODEL_HISTORY_H
#define CREMA_COLLECTOR_MODEL_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/emit/emit.h"

#define HISTORY_POINTS (1u << 16) /* over all workers: 14 MiB, half as much again while reading */
#define HISTORY_CELL_SHIFT 28	  /* initial cell: 2^28 ns, a quarter of a second */

/*
 * The layers of contract/counters.def, in bytes, then its times, in nanoseconds of tasks. `from`:
 * ALL is the work of tasks and of threads without a task; OWN and POOL are the time of the tasks'
 * own threads and of pool threads; PROCESS is the whole process by the kernel's account. PROCESS
 * and both cpu rows come with the snapshots that the worker takes of itself, twice a second unless
 * its event loop is blocked.
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
	uint64_t snapshot_ns; /* when the worker took its snapshot; 0: unknown */
	uint32_t known;	      /* bit HISTORY_x */
	uint64_t v[HISTORY_SERIES];
	struct value outside_cpu_ns, outside_import_bytes; /* of threads without a task */
	struct value children_cpu_ns;			   /* of child processes that have ended */
};

struct history {
	struct history_point *v; /* by time, once settled */
	size_t n, cap;
};

/* One series at one time. */
struct history_step {
	uint64_t at_ns, sum;
};

struct model;
struct totals;

/* The name of a series, and whether it holds times rather than bytes. */
const char *history_name(enum history_series s);
bool history_is_class(enum history_series s);
/* Whether it comes with the worker's snapshots. */
bool history_is_sampled(enum history_series s);

/*
 * Makes steps, ordered by time, rise. Sums that are read while a thread folds its numbers may miss
 * them: a step that falls below its predecessor and is corrected by the next carries no
 * information, and is removed. A value that stays lower was retracted (a wait that turned out to be
 * another kind): it counts as if it had never been there. Returns how many steps remain.
 */
size_t history_mend(struct history_step *v, size_t n);

/* Adds the totals as a point: 0 or -ENOMEM. */
int history_add(struct model *m, struct history *h, const struct totals *t, uint64_t snapshot_ns);
/* Sorts all workers' points, and lengthens the cells until the points are within the limit. */
void history_thin(struct model *m);

#endif
