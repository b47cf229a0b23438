/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics_hosts.c - what the host samples say of a run. A host is one boot id, whatever its
 * containers are called; any worker's agent may have sent its samples. */
#include "collector/metrics/metrics_hosts.h"

#include <math.h>
#include <string.h>

bool same_host(const struct worker *a, const struct worker *b)
{
	return a == b || (a->boot_id && b->boot_id && strcmp(a->boot_id, b->boot_id) == 0);
}

bool same_net(const struct worker *a, const struct worker *b)
{
	return a == b || (same_host(a, b) && a->net_namespace.type == VALUE_UINT &&
			  b->net_namespace.type == VALUE_UINT &&
			  a->net_namespace.v.u == b->net_namespace.v.u);
}

bool is_first_of(const struct run *r, size_t at, same_fn same)
{
	size_t i;

	for (i = 0; i < at; i++) {
		if (same(r->workers.v[i], r->workers.v[at]))
			return false;
	}
	return true;
}

/* The samples next to the run's edges: the last before it and the first after it, if there are. */
struct edges {
	const struct host_sample *from, *to;
};

static void look(struct edges *e, const struct host_sample *h, const struct run *r)
{
	if (isnan(h->stolen_seconds) || isnan(h->time))
		return;
	if (!e->from || (h->time <= r->start ? h->time > e->from->time || e->from->time > r->start
					     : h->time < e->from->time))
		e->from = h;
	if (!e->to || (h->time >= r->stop ? h->time < e->to->time || e->to->time < r->stop
					  : h->time > e->to->time))
		e->to = h;
}

static struct value stolen_on(const struct run *r, const struct worker *of)
{
	const struct model *m = r->model;
	struct edges e = {0};
	size_t i, j;

	for (i = 0; i < m->workers.n; i++) {
		if (!same_host(m->workers.v[i], of))
			continue;
		for (j = 0; j < m->workers.v[i]->hosts.n; j++)
			look(&e, &m->workers.v[i]->hosts.v[j], r);
	}
	if (!e.from || !(e.from->time < e.to->time))
		return value_null();
	return value_real(e.to->stolen_seconds - e.from->stolen_seconds);
}

struct value metric_stolen_cpu_seconds(const struct facts *f)
{
	const struct run *r = f->run;
	struct value sum = value_null();
	size_t i;

	for (i = 0; i < r->workers.n; i++) {
		if (is_first_of(r, i, same_host))
			sum = i ? value_plus(sum, stolen_on(r, r->workers.v[i]))
				: stolen_on(r, r->workers.v[i]);
	}
	return sum;
}
