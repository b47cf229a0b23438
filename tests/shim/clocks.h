/* SPDX-License-Identifier: BSD-3-Clause */
/* clocks.h - the truth about times: what the kernel says of the calling thread. */
#ifndef CREMA_TESTS_SHIM_CLOCKS_H
#define CREMA_TESTS_SHIM_CLOCKS_H

#include "harness.h"

#include <stdio.h>
#include <time.h>

/* This program's own look at the kernel's clocks of its thread. */
static inline uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t run_delay_ns(void)
{
	FILE *f = fopen("/proc/thread-self/schedstat", "re");
	uintmax_t cpu = 0, delay = 0;

	assert_true(f && fscanf(f, "%ju %ju", &cpu, &delay) == 2);
	fclose(f);
	return delay;
}

struct look {
	uint64_t now, cpu, delay;
};

static inline struct look look(void)
{
	struct look l = {0, cpu_ns(), run_delay_ns()};

	l.now = harness_now_ns();
	return l;
}

/* Since then: neither on a core nor waiting for one. */
static inline uint64_t blocked_ns(const struct look *l)
{
	return harness_now_ns() - l->now - (cpu_ns() - l->cpu) - (run_delay_ns() - l->delay);
}

#endif
