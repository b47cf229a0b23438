/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * result.h - the result of a run of the swarm: a line for each tenth of it, and the total.
 */
#ifndef TESTS_BENCH_SWARM_RESULT_H
#define TESTS_BENCH_SWARM_RESULT_H

#include <stdio.h>
#include <sys/types.h>

#include "tests/bench/swarm/stats.h"
#include "tests/bench/swarm/watch.h"

struct result_mark {
	uint64_t at_ns, records, cpu_ns;
	struct stats stats;
};

#define RESULT_PARTS 16u

struct result {
	struct {
		uint64_t records, rss_bytes;
		double cpu_ns_per_record;
	} part[RESULT_PARTS];
	unsigned int parts;
	pid_t pid; /* of the collector; 0: unknown */
	struct result_mark begin, block, now;
	uint64_t rss_first, rss_last, rss_most;
	uint64_t sent, acked; /* task records */
	uint64_t frames, sent_again, skipped, cuts, messages, read_bytes, tasks;
	uint64_t workers, late_frames;
	double connect_seconds;
};

/* Call before the first record; prints the table's header. */
void result_begin(struct result *result, uint64_t now_ns);
/* A part has ended: prints one line. */
void result_block(struct result *result, uint64_t now_ns, uint64_t acked_records,
		  const struct stats *stats);
void result_sample(struct result *result);
void result_print(const struct result *result);
void result_pages(const struct watch_page *pages, unsigned int n);
void result_json(const struct result *result, FILE *out);

#endif
