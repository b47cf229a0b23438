/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch.h - what the collector's process costs, and who asks its pages meanwhile.
 *
 * Pages are asked as a browser that shows them does it: each `least` seconds, or four times as long
 * as the last answer took. In a thread of its own.
 */
#ifndef TESTS_BENCH_SWARM_WATCH_H
#define TESTS_BENCH_SWARM_WATCH_H

#include <stdint.h>
#include <sys/types.h>

/* CPU of all threads that live, in ns; 0: the process is gone. */
uint64_t watch_cpu_ns(pid_t pid);
/* VmRSS and VmHWM in bytes; 0: not known. */
uint64_t watch_rss_bytes(pid_t pid);
uint64_t watch_peak_bytes(pid_t pid);

struct watch_page {
	const char *name;
	uint64_t answers, failures, bytes; /* bytes: of the last answer */
	double slowest;			   /* seconds */
};

struct watch;

/* names: at most 4, then NULL; static. NULL: it could not. */
struct watch *watch_start(const char *http, double least, const char *const *names);
/* Ends the thread; the pages asked, in *pages, live until watch_free(). */
unsigned int watch_stop(struct watch *watch, const struct watch_page **pages);
void watch_free(struct watch *watch);

#endif
