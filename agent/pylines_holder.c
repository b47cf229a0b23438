/* SPDX-License-Identifier: BSD-3-Clause */
/* pylines_holder.c - which stack holds the interpreter lock while threads of tasks wait for it. */
#include "agent/pylines.h"
#include "common/clock.h"

void pylines_waits(struct pylines *l, const struct pylines_waiter *waiter)
{
	struct pylines_waiter *w = &l->waiter[l->waiters];

	*w = *waiter;
	l->waiters += py_gil_read(&l->process, w->cond, &w->gil);
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

static void remember(struct pylines *l, const struct pylines_waiter *w, struct pyline_row *r,
		     uint64_t boot_ns)
{
	struct pylines_thread *t = &l->thread[w->thread];

	t->held[t->held_next++ % PYLINES_HELD] =
		(struct pylines_held){.boot_ns = boot_ns,
				      .table = (uint32_t)l->table_id,
				      .row = r ? (uint32_t)(r - l->table->row) + 1 : 0};
}

void pylines_blame(struct pylines *l)
{
	const struct pylines_waiter *last = NULL; /* whose holder `r` is */
	uint64_t boot_ns = l->waiters ? clock_boot_ns() : 0;
	struct pyline_row *r = NULL;

	for (size_t i = 0; i < l->waiters; i++) {
		const struct pylines_waiter *w = &l->waiter[i];
		struct py_gil now;
		bool known;

		if (!r || r->why != PYLINES_WHOLE || last->gil.holder != w->gil.holder ||
		    last->span != w->span)
			r = row_of(l, w);
		last = w;
		known = r && r->why == PYLINES_WHOLE && py_gil_read(&l->process, w->cond, &now) &&
			now.holder == w->gil.holder && now.switches == w->gil.switches;
		remember(l, w, known ? r : NULL, boot_ns);
		if (!known)
			continue;
		r->held_samples++;
		r->held_ns += w->ns;
		r->changed = true;
	}
}

static bool is_within(const struct pylines *l, const struct pylines_held *h, uint64_t from_boot_ns,
		      uint64_t to_boot_ns)
{
	return h->boot_ns && h->boot_ns >= from_boot_ns && h->boot_ns <= to_boot_ns &&
	       h->table == (uint32_t)l->table_id;
}

struct pyline_row *pylines_held_by(struct pylines *l, uint32_t tid, uint64_t from_boot_ns,
				   uint64_t to_boot_ns, uint32_t *samples, uint32_t *of)
{
	const struct pylines_thread *t = l->thread;
	uint32_t most = 0;

	*samples = *of = 0;
	while (t < l->thread + CREMA_SHM_THREADS && t->tid != tid)
		t++;
	if (!tid || t == l->thread + CREMA_SHM_THREADS)
		return NULL;
	for (size_t i = 0; i < PYLINES_HELD; i++) {
		uint32_t n = 0;

		if (!is_within(l, &t->held[i], from_boot_ns, to_boot_ns))
			continue;
		++*of;
		for (size_t k = 0; k < PYLINES_HELD && t->held[i].row; k++)
			n += is_within(l, &t->held[k], from_boot_ns, to_boot_ns) &&
			     t->held[k].row == t->held[i].row;
		if (n > *samples) {
			*samples = n;
			most = t->held[i].row;
		}
	}
	return most ? &l->table->row[most - 1] : NULL;
}
