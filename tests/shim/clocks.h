/* SPDX-License-Identifier: BSD-3-Clause */
/* clocks.h - reference times: the kernel's values for the calling thread. */
#ifndef CREMA_TESTS_SHIM_CLOCKS_H
#define CREMA_TESTS_SHIM_CLOCKS_H

#include "harness.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* This program's direct reading of the thread's clocks. */
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

/*
 * What a hypervisor took from all cores, in ticks of the kernel. According to the kernel, a thread
 * that loses its core in this way is neither running nor waiting for one: no class has that time.
 */
static inline uint64_t stolen_ns(void)
{
	FILE *f = fopen("/proc/stat", "re");
	uintmax_t steal = 0;

	assert_true(f && fscanf(f, "cpu %*u %*u %*u %*u %*u %*u %*u %ju", &steal) == 1);
	fclose(f);
	return steal * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

struct look {
	uint64_t now, cpu, delay, stolen;
};

/* All values at one moment: if the core was lost while reading, they are read again. */
static inline struct look look(void)
{
	uint64_t began;
	struct look l;
	int times = 0;

	do {
		began = harness_now_ns();
		l.stolen = stolen_ns();
		l.delay = run_delay_ns();
		l.cpu = cpu_ns();
		l.now = harness_now_ns();
	} while (l.now - began > 500000 && ++times < 100);
	return l;
}

/* The error of known_ns is stolen_ns at most, which is for all cores. */
struct truth {
	uint64_t known_ns, cpu_ns, delay_ns, stolen_ns;
};

/* Since then; known is the time that the thread was neither on a core nor waiting for one. */
static inline struct truth blocked_since(const struct look *l)
{
	struct look n = look();
	struct truth k = {0, n.cpu - l->cpu, n.delay - l->delay, n.stolen - l->stolen};

	k.known_ns = n.now - l->now - k.cpu_ns - k.delay_ns;
	return k;
}

/*
 * stolen_ns() has a resolution of 10 ms. A thread detects shorter losses with its own clocks: time
 * passed, its CPU clock did not advance, and it was not switched out. Call lost_look() often: time
 * stolen next to a switch is not detected.
 */
struct lost {
	uint64_t switches, now, cpu, sum_ns;
};

static inline uint64_t switches_so_far(void)
{
	struct rusage ru;

	assert_int_equal(getrusage(RUSAGE_THREAD, &ru), 0);
	return (uint64_t)ru.ru_nvcsw + (uint64_t)ru.ru_nivcsw;
}

static inline void lost_begin(struct lost *l)
{
	l->switches = switches_so_far();
	l->now = harness_now_ns();
	l->cpu = cpu_ns();
}

/* Adds what was stolen since the last call. */
static inline void lost_look(struct lost *l)
{
	uint64_t wall = harness_now_ns() - l->now, cpu = cpu_ns() - l->cpu;

	if (switches_so_far() == l->switches && wall > cpu)
		l->sum_ns += wall - cpu;
	lost_begin(l);
}

#endif
