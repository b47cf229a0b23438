/* SPDX-License-Identifier: BSD-3-Clause */
/* history.c - points of totals over time (history.h). */
#include "collector/model/model.h"

#include <errno.h>
#include <stdlib.h>

_Static_assert(HISTORY_SERIES <= 32, "a point has 32 bits for what is known");

const char *history_name(enum history_series s)
{
	static const char *const names[] = {
#define LAYER(id, count, ...) [HISTORY_##count] = #count,
#include "counters.def"
#define SERIES(id, from, member) [HISTORY_##id] = #id,
#define TIME(id, name, column, ...) HISTORY_##column(SERIES, id, name)
#include "counters.def"
#undef SERIES
	};

	return names[s];
}

bool history_is_class(enum history_series s)
{
	return s >= HISTORY_LAYERS;
}

enum { ALL, PROCESS };

bool history_is_sampled(enum history_series s)
{
	static const unsigned char froms[HISTORY_LAYERS] = {
#define LAYER(id, count, from, ...) [HISTORY_##count] = from,
#include "counters.def"
	};

	return s < HISTORY_LAYERS ? froms[s] == PROCESS
				  : s == HISTORY_cpu_seconds || s == HISTORY_pool_cpu_seconds;
}

static void set(struct history_point *p, enum history_series s, struct value v)
{
	if (v.type != VALUE_UINT)
		return;
	p->v[s] = v.v.u;
	p->known |= 1u << s;
}

#define FROM_ALL(t, member)                                                                        \
	value_plus(count_of(&(t)->tasks, CREMA_C_##member),                                        \
		   count_of(&(t)->unattributed, CREMA_C_##member))
#define FROM_PROCESS(t, member) ((t)->process.member)
#define FROM_OWN(t, member) own_ns(&(t)->tasks, CREMA_T_##member)
#define FROM_POOL(t, member) pool_ns(&(t)->tasks, CREMA_T_##member)

static void fill(struct history_point *p, const struct totals *t)
{
#define LAYER(id, count, from, ...) set(p, HISTORY_##count, FROM_##from(t, count));
#include "counters.def"
#define SERIES(id, from, member) set(p, HISTORY_##id, FROM_##from(t, member));
#define TIME(id, name, column, ...) HISTORY_##column(SERIES, id, name)
#include "counters.def"
#undef SERIES
	p->outside_cpu_ns =
		value_minus(t->seen.cpu_ns, value_plus(own_ns(&t->tasks, CREMA_T_cpu),
						       pool_ns(&t->tasks, CREMA_T_cpu)));
	p->outside_import_bytes = count_of(&t->unattributed, CREMA_C_import_read_bytes);
	p->children_cpu_ns = t->children.cpu_ns;
}

size_t history_mend(struct history_step *v, size_t n)
{
	size_t i, kept = 0;

	for (i = 0; i < n; i++) {
		if (kept && i + 1 < n && v[i].sum < v[kept - 1].sum &&
		    v[i + 1].sum >= v[kept - 1].sum)
			continue;
		v[kept++] = v[i];
	}
	for (i = kept; i-- > 1;) {
		if (v[i].sum < v[i - 1].sum)
			v[i - 1].sum = v[i].sum;
	}
	return kept;
}

static int by_time(const void *pa, const void *pb)
{
	const struct history_point *a = pa, *b = pb;

	if (a->boot_ns != b->boot_ns)
		return a->boot_ns < b->boot_ns ? -1 : 1;
	return a->snapshot_ns < b->snapshot_ns ? -1 : a->snapshot_ns > b->snapshot_ns;
}

/* Sorts, and keeps the latest point of each cell of 2^shift ns. */
static void settle(struct history *h, unsigned int shift)
{
	struct history_point *small;
	size_t i, kept = 0;

	if (!h->n)
		return;
	qsort(h->v, h->n, sizeof(*h->v), by_time);
	for (i = 1; i < h->n; i++) {
		if (h->v[i].boot_ns >> shift != h->v[kept].boot_ns >> shift)
			kept++;
		h->v[kept] = h->v[i];
	}
	h->n = kept + 1;
	small = h->n * 4 < h->cap ? realloc(h->v, h->n * sizeof(*h->v)) : NULL;
	if (small) {
		h->v = small;
		h->cap = h->n;
	}
}

void history_thin(struct model *m)
{
	size_t i;

	do {
		m->history_points = 0;
		for (i = 0; i < m->workers.n; i++) {
			settle(&m->workers.v[i]->history, m->history_shift);
			m->history_points += m->workers.v[i]->history.n;
		}
		if (m->history_points > HISTORY_POINTS)
			m->history_shift++;
	} while (m->history_points > HISTORY_POINTS && m->history_shift < 63);
}

int history_add(struct model *m, struct history *h, const struct totals *t, uint64_t snapshot_ns)
{
	struct history_point *p = h->n ? &h->v[h->n - 1] : NULL;

	if (!t->boot_ns)
		return 0;
	if (!p || p->boot_ns >> m->history_shift != t->boot_ns >> m->history_shift ||
	    p->boot_ns > t->boot_ns) {
		p = ARRAY_NEW(h);
		if (!p)
			return -ENOMEM;
		m->history_points++;
	}
	*p = (struct history_point){.boot_ns = t->boot_ns, .snapshot_ns = snapshot_ns};
	fill(p, t);
	/* allow some excess: only sorting finds duplicates and unsorted points */
	if (m->history_points > HISTORY_POINTS + HISTORY_POINTS / 2)
		history_thin(m);
	return 0;
}
