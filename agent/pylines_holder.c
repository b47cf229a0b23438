/* SPDX-License-Identifier: BSD-3-Clause */
/* pylines_holder.c - which stack holds the interpreter lock while threads of tasks wait for it. */
#include "agent/pylines.h"

void pylines_waits(struct pylines *l, uint64_t cond, uint32_t span, uint64_t ns)
{
	struct pylines_waiter *w = &l->waiter[l->waiters];

	*w = (struct pylines_waiter){.cond = cond, .span = span, .ns = ns};
	l->waiters += py_gil_read(&l->process, cond, &w->gil);
}

/* Threads of tasks were already sampled. */
static struct pyline_row *row_of(struct pylines *l, const struct pylines_waiter *w)
{
	struct pyline_row like = {.span = w->span, .outside = true};
	bool cut;

	for (uint32_t i = 0; i < CREMA_SHM_THREADS; i++) {
		const struct crema_thread *t = &l->view->shm->thread[i];

		if (l->thread[i].row_look == l->look &&
		    __atomic_load_n(&t->python, __ATOMIC_RELAXED) == w->gil.holder)
			return l->thread[i].row;
	}
	return pylines_row(l, &like, w->gil.holder, 0, &cut);
}

void pylines_blame(struct pylines *l)
{
	const struct pylines_waiter *last = NULL; /* whose holder `r` is */
	struct pyline_row *r = NULL;

	for (size_t i = 0; i < l->waiters; i++) {
		const struct pylines_waiter *w = &l->waiter[i];
		struct py_gil now;

		if (!r || r->why != PYLINES_WHOLE || last->gil.holder != w->gil.holder ||
		    last->span != w->span)
			r = row_of(l, w);
		last = w;
		if (!r || r->why != PYLINES_WHOLE || !py_gil_read(&l->process, w->cond, &now) ||
		    now.holder != w->gil.holder || now.switches != w->gil.switches)
			continue;
		r->held_samples++;
		r->held_ns += w->ns;
		r->changed = true;
	}
}
