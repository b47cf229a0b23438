/* SPDX-License-Identifier: BSD-3-Clause */
/* stats.c - a histogram of times. */
#include "tests/bench/swarm/stats.h"

/* The highest bit and the five below it. */
static unsigned int bucket_of(uint64_t ns)
{
	unsigned int power;

	if (ns < STATS_SUB)
		return (unsigned int)ns;
	power = 63u - (unsigned int)__builtin_clzll(ns);
	return (power - 4) * STATS_SUB + (unsigned int)(ns >> (power - 5)) - STATS_SUB;
}

static uint64_t bucket_end(unsigned int bucket)
{
	unsigned int power = bucket / STATS_SUB + 4;

	if (bucket < STATS_SUB)
		return bucket;
	return ((uint64_t)(bucket % STATS_SUB + STATS_SUB + 1) << (power - 5)) - 1;
}

void stats_add(struct stats *stats, uint64_t ns)
{
	stats->count[bucket_of(ns)]++;
	stats->n++;
	if (ns > stats->max_ns)
		stats->max_ns = ns;
}

uint64_t stats_quantile(const struct stats *stats, double share)
{
	uint64_t want = (uint64_t)(share * (double)stats->n), seen = 0, end;
	unsigned int i;

	for (i = 0; i < STATS_BUCKETS; i++) {
		seen += stats->count[i];
		if (!stats->count[i] || seen <= want)
			continue;
		end = bucket_end(i);
		return end < stats->max_ns ? end : stats->max_ns;
	}
	return stats->max_ns;
}

void stats_since(const struct stats *now, const struct stats *before, struct stats *out)
{
	unsigned int i;

	for (i = 0; i < STATS_BUCKETS; i++)
		out->count[i] = now->count[i] - before->count[i];
	out->n = now->n - before->n;
	out->max_ns = now->max_ns; /* since the beginning: only limits the quantile */
}
