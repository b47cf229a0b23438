/* SPDX-License-Identifier: BSD-3-Clause */
/* tally.c - the numbers of one attempt, and sums over several. */
#include "collector/metrics/metrics.h"

#include <math.h>
#include <string.h>

#define LONG_TASK_SECONDS 0.05

struct value attempt_wall_ns(const struct attempt *a)
{
	return attempt_u64(a, TASK_F_wall_ns);
}

double attempt_queued_seconds(const struct attempt *a)
{
	return value_number(own_ns(&a->c, CREMA_T_runqueue), NULL) / 1e9;
}

/* For a worker that died, the kernel's charge is only known from the last sample, up to a
 * second before. */
static bool storage_is_sampled(const struct attempt *a)
{
	return a->state == ATTEMPT_KILLED || a->state == ATTEMPT_LOST;
}

static struct value storage_read(const struct attempt *a, struct value charged)
{
	return a->c.shared->fs_unknown || storage_is_sampled(a) ? value_null() : charged;
}

struct value attempt_storage_read(const struct attempt *a)
{
	return storage_read(a, count_of(&a->c, CREMA_C_storage_read_bytes));
}

/* A lower bound: what was charged outside calls on unproven file systems, from the last sample. */
static struct value storage_known(const struct attempt *a, struct value all, struct value unsure)
{
	if (all.type == VALUE_NULL || unsure.type == VALUE_NULL || !a->c.shared->fs_unknown)
		return all;
	return value_uint(all.v.u > unsure.v.u ? all.v.u - unsure.v.u : 0);
}

struct value attempt_storage_known(const struct attempt *a)
{
	return storage_known(a, count_of(&a->c, CREMA_C_storage_read_bytes),
			     count_of(&a->c, CREMA_C_storage_unsure_bytes));
}

/*
 * Page faults of mapped files and libraries are in no call. A task that had them waited for storage
 * as long as the other classes leave over, but at least as long as its calls show. If one of these
 * is unknown, what is left over may be that one's: then its wait is unknown.
 */
static void estimate_storage(const struct attempt *a, struct classes *c, bool wall_known,
			     double rest)
{
	const uint32_t storage = 1u << CREMA_T_storage_wait;
	double measured = c->seconds[CREMA_T_storage_wait];

	if (!(a->flags & CREMA_TASK_FAULT_STORAGE))
		return;
	c->storage_estimated = wall_known && !(c->unknown & ~storage);
	if (!c->storage_estimated) {
		c->seconds[CREMA_T_storage_wait] = 0;
		c->cls[CREMA_T_storage_wait] = value_null();
		c->unknown |= storage;
		return;
	}
	rest += measured;
	c->seconds[CREMA_T_storage_wait] = rest > measured ? rest : measured;
	c->cls[CREMA_T_storage_wait] = value_real(c->seconds[CREMA_T_storage_wait]);
	c->unknown &= ~storage;
}

void attempt_classes(const struct attempt *a, struct classes *c)
{
	bool wall_known;
	double rest, wall;
	int i;

	attempt_detail(a, &c->detail);
	c->unknown = 0;
	c->storage_estimated = false;
	c->unclassified = value_null();
	c->remote = attempt_is_chunk(a) && file_is_remote(a->filename);
	c->events = attempt_is_chunk(a) ? attempt_events(a) : value_null();
	c->wall = value_seconds(attempt_wall_ns(a));
	wall = rest = value_number(c->wall, &wall_known);
	for (i = 0; i < CREMA_TIMES; i++) {
		if (c->detail.c.own_known >> i & 1) {
			c->seconds[i] = (double)c->detail.c.own[i] / 1e9;
			c->cls[i] = value_real(c->seconds[i]);
		} else {
			c->seconds[i] = 0;
			c->cls[i] = value_null();
			c->unknown |= 1u << i;
		}
		rest -= c->seconds[i];
	}
	estimate_storage(a, c, wall_known, rest);
	if (!wall_known)
		return;
	rest = wall;
	for (i = 0; i < CREMA_TIMES; i++)
		rest -= c->seconds[i];
	c->unclassified = value_real(rest);
}

/* Adds one of each; `known` has a bit for each. Branch-free: an attempt is in half a dozen sums. */
static void sums_add(struct sum *s, const uint64_t *v, uint64_t known, unsigned int n)
{
	unsigned int i;
	uint64_t is;

	for (i = 0; i < n; i++) {
		is = known >> i & 1;
		s[i].n++;
		s[i].v += v[i] & -is;
		s[i].unknown += !is;
	}
}

static void sum_add(struct sum *s, struct value v)
{
	s->n++;
	if (v.type == VALUE_UINT)
		s->v += v.v.u;
	else if (v.type == VALUE_INT && v.v.i >= 0)
		s->v += (uint64_t)v.v.i;
	else
		s->unknown++;
}

struct value sum_value(const struct sum *s)
{
	return s->unknown ? value_null() : value_uint(s->v);
}

struct value sum_known(const struct sum *s)
{
	return s->n && s->unknown == s->n ? value_null() : value_uint(s->v);
}

static void tally_unmeasured_add(struct tally *t, const struct attempt *a, const struct classes *c)
{
	bool known;
	double wall = value_number(c->wall, &known);

	t->unmeasured++;
	sums_add(t->own, c->detail.c.own, 0, CREMA_TIMES);
	sums_add(t->pool, c->detail.c.pool, 0, CREMA_TIMES);
	if (!attempt_holds_thread(a))
		return;
	t->wall += wall;
	t->unmeasured_s += wall;
	t->unclassified_unknown += !known;
	if (wall > LONG_TASK_SECONDS)
		t->unclassified_long += wall;
}

static void tally_time(struct tally *t, const struct attempt *a, const struct classes *c)
{
	const struct counters *counters = &c->detail.c;
	bool known;
	double wall, v;
	int i;

	if (attempt_is_unmeasured(a)) {
		tally_unmeasured_add(t, a, c);
		return;
	}
	t->timed++;
	wall = value_number(c->wall, NULL);
	t->wall += wall;
	for (i = 0; i < CREMA_TIMES; i++) {
		t->cls[i] += c->seconds[i];
		t->class_unknown[i] += c->unknown >> i & 1;
	}
	sums_add(t->own, counters->own, counters->own_known, CREMA_TIMES);
	sums_add(t->pool, counters->pool, counters->pool_known, CREMA_TIMES);
	v = value_number(c->unclassified, &known);
	t->unclassified += v;
	t->unclassified_unknown += !known;
	if (wall > LONG_TASK_SECONDS)
		t->unclassified_long += v;
}

bool file_is_remote(const char *name)
{
	return name && strstr(name, "://") && strncmp(name, "file://", 7) != 0;
}

static void tally_came_add(struct tally *t, const struct classes *c)
{
	const struct attempt_detail *d = &c->detail;

	if (!c->remote) {
		sum_add(&t->file_read, count_of(&d->c, CREMA_C_read_bytes));
		return;
	}
	sum_add(&t->server_network, count_of(&d->c, CREMA_C_network_read_bytes));
	sum_add(&t->server_baskets, count_of(&d->c, CREMA_C_basket_bytes));
}

void tally_take(struct tally *t, const struct attempt *a, const struct classes *c)
{
	const struct attempt_detail *d = &c->detail;
	struct value charged = count_of(&d->c, CREMA_C_storage_read_bytes);
	bool known;

	t->attempts++;
	sum_add(&t->wall_ns, attempt_wall_ns(a));
	sums_add(t->count, d->c.count, d->c.count_known, CREMA_COUNTS);
	sum_add(&t->storage_read, storage_read(a, charged));
	sum_add(&t->storage_known,
		storage_known(a, charged, count_of(&d->c, CREMA_C_storage_unsure_bytes)));
	if (attempt_is_chunk(a)) {
		tally_came_add(t, c);
		sum_add(&t->events, c->events);
		sum_add(&t->bytesread, detail_knows(d, TASK_F_coffea_bytesread)
					       ? value_uint(d->coffea_bytesread)
					       : value_null());
		known = detail_knows(d, TASK_F_coffea_processtime) &&
			isfinite(d->coffea_processtime);
		t->processtime += known ? d->coffea_processtime : 0;
		t->processtime_unknown += !known;
	}
	tally_time(t, a, c);
}

void tally_add(struct tally *t, const struct attempt *a)
{
	struct classes c;

	attempt_classes(a, &c);
	tally_take(t, a, &c);
}

struct value tally_class(const struct tally *t, enum crema_time_id id)
{
	return tally_lacks(t, id) ? value_null() : value_real(t->cls[id]);
}

struct value tally_class_part(const struct tally *t, enum crema_time_id id)
{
	return t->class_unknown[id] || (t->unmeasured && !t->timed) ? value_null()
								    : value_real(t->cls[id]);
}

bool tally_lacks(const struct tally *t, enum crema_time_id id)
{
	return t->class_unknown[id] || t->unmeasured;
}

struct value tally_wall(const struct tally *t)
{
	return t->unclassified_unknown ? value_null() : value_real(t->wall);
}

struct value tally_unclassified(const struct tally *t)
{
	return t->unclassified_unknown ? value_null()
				       : value_real(t->unclassified + t->unmeasured_s);
}

struct value tally_unclassified_part(const struct tally *t)
{
	return t->unclassified_unknown ? value_null() : value_real(t->unclassified);
}

struct value tally_unmeasured(const struct tally *t)
{
	return t->unclassified_unknown ? value_null() : value_real(t->unmeasured_s);
}

struct value tally_cpu(const struct tally *t)
{
	return value_seconds(
		value_plus(sum_value(&t->own[CREMA_T_cpu]), sum_value(&t->pool[CREMA_T_cpu])));
}

struct value tally_cpu_part(const struct tally *t)
{
	const struct sum *own = &t->own[CREMA_T_cpu], *pool = &t->pool[CREMA_T_cpu];

	if (own->unknown > t->unmeasured || pool->unknown > t->unmeasured ||
	    (t->unmeasured && !t->timed))
		return value_null();
	return value_seconds(value_uint(own->v + pool->v));
}
