/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics_hosts.c - groups workers by host (metrics_hosts.h), and computes the steal time of
 * their CPUs. */
#include "collector/metrics/metrics_hosts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool same(const struct worker *a, const struct worker *b, enum sharing by)
{
	if (a == b)
		return true;
	if (by == SHARE_NET)
		return workers_share_network(a, b);
	return a->boot_id && b->boot_id && !strcmp(a->boot_id, b->boot_id);
}

/* A worker that does not report its place shares nothing. */
static uint64_t hash_of(const struct worker *w, enum sharing by)
{
	if (!w->boot_id || (by == SHARE_NET && w->net_namespace.type != VALUE_UINT))
		return hash_pair((uintptr_t)w, 0);
	return hash_pair(hash_bytes(0, w->boot_id, strlen(w->boot_id)),
			 by == SHARE_NET ? w->net_namespace.v.u : 0);
}

struct host_key {
	const struct hosts *hosts;
	const struct worker *worker;
	enum sharing by;
};

/* The table holds indexes, from 1, as the array moves. */
static bool same_place(const void *item, const void *key)
{
	const struct host_key *w = key;

	return same(w->hosts->by[w->by].v[(uintptr_t)item - 1].first, w->worker, w->by);
}

static struct host *find(const struct hosts *hosts, const struct worker *w, enum sharing by)
{
	struct host_key wanted = {hosts, w, by};
	uintptr_t place =
		(uintptr_t)table_find(&hosts->by[by].table, hash_of(w, by), same_place, &wanted);

	return place ? &hosts->by[by].v[place - 1] : NULL;
}

static int add_group(struct hosts *hosts, const struct worker *w, enum sharing by)
{
	struct host *host;

	if (find(hosts, w, by))
		return 0;
	host = ARRAY_NEW(&hosts->by[by]);
	if (!host)
		return -ENOMEM;
	host->first = w;
	return table_add(&hosts->by[by].table, hash_of(w, by), (void *)(uintptr_t)hosts->by[by].n);
}

static int add_member(struct hosts *hosts, const struct worker *w, enum sharing by)
{
	struct host *host = find(hosts, w, by);
	const struct worker **at;

	if (!host)
		return 0; /* of another run */
	at = ARRAY_NEW(host);
	if (!at)
		return -ENOMEM;
	*at = w;
	return 0;
}

static int group(struct hosts *hosts, const struct run *run, enum sharing by)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < run->workers.n && !rc; i++)
		rc = add_group(hosts, run->workers.v[i], by);
	for (i = 0; i < run->model->workers.n && !rc; i++)
		rc = add_member(hosts, run->model->workers.v[i], by);
	return rc;
}

struct hosts *hosts_build(const struct run *run)
{
	struct hosts *hosts = calloc(1, sizeof(*hosts));

	if (hosts && (group(hosts, run, SHARE_HOST) || group(hosts, run, SHARE_NET))) {
		hosts_free(hosts);
		return NULL;
	}
	return hosts;
}

void hosts_free(struct hosts *hosts)
{
	size_t i, by;

	for (by = 0; hosts && by < SHARINGS; by++) {
		for (i = 0; i < hosts->by[by].n; i++)
			free(hosts->by[by].v[i].v);
		free(hosts->by[by].v);
		table_release(&hosts->by[by].table);
	}
	free(hosts);
}

/* The samples next to the run: the last before and the first after it, if any. */
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

static struct value stolen_on(const struct run *r, const struct host *host)
{
	struct edges e = {0};
	size_t i, j;

	for (i = 0; i < host->n; i++) {
		for (j = 0; j < host->v[i]->hosts.n; j++)
			look(&e, &host->v[i]->hosts.v[j], r);
	}
	if (!e.from || !(e.from->time < e.to->time))
		return value_null();
	return value_real(e.to->stolen_seconds - e.from->stolen_seconds);
}

struct value metric_stolen_cpu_seconds(const struct facts *f)
{
	struct value sum = value_null(), v;
	size_t i;

	for (i = 0; i < f->hosts->by[SHARE_HOST].n; i++) {
		v = stolen_on(f->run, &f->hosts->by[SHARE_HOST].v[i]);
		sum = i ? value_plus(sum, v) : v;
	}
	return sum;
}
