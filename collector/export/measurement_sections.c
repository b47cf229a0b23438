/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measurement_sections.c - sections of the tasks' own code by name, as roastcoffea's table of
 * chunks lists them: {name: count, total_duration, mean_duration, type}. Of one that has memory as
 * well: what the process grew by.
 */
#include <string.h>

#include "collector/export/measurement_parts.h"

#define MIB (1024.0 * 1024.0)
#define DELTA 2 /* of the four numbers of a gauge of memory: start, end, delta, peak */

struct named {
	struct value count, seconds;
	struct gauge_stat memory;
};

static bool same_name(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

static struct value wall_of(const struct section_sum *s)
{
	size_t i;

	for (i = 0; section_number_name(i); i++) {
		if (!strcmp(section_number_name(i), "wall_seconds"))
			return section_number(s, i, false);
	}
	return value_null();
}

static bool is_memory(const struct gauge_sum *g)
{
	return same_name(g->kind, "memory");
}

static void add_memory(struct gauge_stat *sum, const struct gauge_stat *s)
{
	if (!s->count)
		return;
	if (!sum->count || s->min < sum->min)
		sum->min = s->min;
	if (!sum->count || s->max > sum->max)
		sum->max = s->max;
	sum->count += s->count;
	sum->sum += s->sum;
}

/* Whether tasks named it by crema; what roastcoffea's trackers told under the name is then left
 * out. */
static bool by_crema(const struct sections *all, const char *name)
{
	size_t i;

	for (i = 0; i < all->v.n; i++) {
		if (same_name(all->v.v[i]->path, name) && same_name(all->v.v[i]->source, "crema"))
			return true;
	}
	return false;
}

/* All sections and gauges of the name, of whatever prefix and thread. */
static struct named sum_of(const struct sections *all, const char *name)
{
	struct named n = {.count = value_uint(0), .seconds = value_real(0)};
	bool ours = by_crema(all, name);
	size_t i;

	for (i = 0; i < all->v.n; i++) {
		if (!same_name(all->v.v[i]->path, name) ||
		    (ours && !same_name(all->v.v[i]->source, "crema")))
			continue;
		n.count = value_plus(n.count, all->v.v[i]->count);
		n.seconds = value_plus(n.seconds, wall_of(all->v.v[i]));
	}
	for (i = 0; i < all->gauges.n; i++) {
		if (is_memory(all->gauges.v[i]) && same_name(all->gauges.v[i]->path, name))
			add_memory(&n.memory, &all->gauges.v[i]->stat[DELTA]);
	}
	return n;
}

static void put_named(const struct sections *all, const char *name, struct json *j)
{
	struct named n = sum_of(all, name);
	double counted = value_number(n.count, NULL);
	double mib = MIB * (double)n.memory.count;

	emit_object(j, name);
	emit_value(j, "type", value_text(n.memory.count ? "memory" : "section"));
	emit_value(j, "count", counted > 0 ? n.count : value_uint(n.memory.count));
	measurement_put(j, "total_duration", n.seconds);
	measurement_put(j, "mean_duration", value_ratio(n.seconds, n.count, 1));
	if (n.memory.count) {
		emit_value(j, "mean_mem_delta_mb", value_real(n.memory.sum / mib));
		emit_value(j, "min_mem_delta_mb", value_real(n.memory.min / MIB));
		emit_value(j, "max_mem_delta_mb", value_real(n.memory.max / MIB));
	}
	emit_end(j);
}

static bool is_first_section(const struct sections *all, size_t i)
{
	size_t k;

	for (k = 0; k < i; k++) {
		if (same_name(all->v.v[k]->path, all->v.v[i]->path))
			return false;
	}
	return all->v.v[i]->path != NULL;
}

static bool is_first_memory(const struct sections *all, size_t i)
{
	const char *name = all->gauges.v[i]->path;
	size_t k;

	for (k = 0; k < all->v.n; k++) {
		if (same_name(all->v.v[k]->path, name))
			return false;
	}
	for (k = 0; k < i; k++) {
		if (is_memory(all->gauges.v[k]) && same_name(all->gauges.v[k]->path, name))
			return false;
	}
	return name && is_memory(all->gauges.v[i]);
}

void measurement_sections(const struct sections *all, struct json *j)
{
	size_t i;

	emit_object(j, "sections");
	for (i = 0; i < all->v.n; i++) {
		if (is_first_section(all, i))
			put_named(all, all->v.v[i]->path, j);
	}
	for (i = 0; i < all->gauges.n; i++) {
		if (is_first_memory(all, i))
			put_named(all, all->gauges.v[i]->path, j);
	}
	emit_end(j);
}
