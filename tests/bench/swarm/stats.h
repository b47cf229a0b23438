/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stats.h - latency of acknowledgements: a histogram with buckets 3 % wide, and its quantiles.
 */
#ifndef TESTS_BENCH_SWARM_STATS_H
#define TESTS_BENCH_SWARM_STATS_H

#include <stdint.h>

#define STATS_SUB 32u /* buckets per power of two */
#define STATS_BUCKETS (64u * STATS_SUB)

struct stats {
	uint64_t count[STATS_BUCKETS];
	uint64_t n, max_ns;
};

void stats_add(struct stats *stats, uint64_t ns);
/* The upper end of the bucket at this share of the values; 0: no values. */
uint64_t stats_quantile(const struct stats *stats, double share);
/* What was added since `before`. */
void stats_since(const struct stats *now, const struct stats *before, struct stats *out);

#endif
