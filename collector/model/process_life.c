/* SPDX-License-Identifier: BSD-3-Clause */
/* process_life.c - how much of a worker process's life was work (model.h). */
#include <math.h>

#include "collector/model/model.h"

/* The unit of start times in /proc, the same on every Linux. */
#define TICKS_PER_SECOND UINT64_C(100)

void model_process_lives(struct model *m)
{
	struct worker *w;
	const struct attempt *a;
	double begin, end;
	size_t i;

	for (i = 0; i < m->workers.n; i++) {
		w = m->workers.v[i];
		w->process_start =
			w->start_ticks.type == VALUE_UINT
				? worker_utc(w, w->start_ticks.v.u *
							(UINT64_C(1000000000) / TICKS_PER_SECOND))
				: (double)NAN;
		w->first_edge = w->last_edge = (double)NAN;
		w->work_seconds = 0;
	}
	for (i = 0; i < m->attempts.n; i++) { /* sorted by begin */
		a = m->attempts.v[i];
		w = a->worker;
		begin = attempt_begin(a);
		end = attempt_end(a);
		if (isnan(begin) || isnan(end) || a->state == ATTEMPT_RUNNING)
			continue;
		if (isnan(w->first_edge)) {
			w->first_edge = w->last_edge = begin;
		}
		if (end > w->last_edge) {
			w->work_seconds += end - fmax(begin, w->last_edge);
			w->last_edge = end;
		}
	}
}

struct value worker_life(const struct worker *w)
{
	return value_real(w->goodbye ? worker_utc(w, w->goodbye_boot_ns) - w->process_start
				     : (double)NAN);
}

struct value worker_startup(const struct worker *w)
{
	return value_real(w->left_out ? (double)NAN : w->first_edge - w->process_start);
}

struct value worker_work(const struct worker *w)
{
	return value_real(isnan(w->first_edge) || w->left_out ? (double)NAN : w->work_seconds);
}
