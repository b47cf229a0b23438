/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch.h - the cost of the collector's process, and concurrent requests of its pages.
 *
 * Pages are requested as by a browser that shows them: every `least` seconds, or four times as long
 * as the last response took. In a separate thread.
 */
#ifndef TESTS_BENCH_SWARM_WATCH_H
#define TESTS_BENCH_SWARM_WATCH_H

#include <stdint.h>
#include <sys/types.h>

/* CPU of all live threads, in ns; 0: the process is gone. */
uint64_t watch_cpu_ns(pid_t pid);
/* VmRSS and VmHWM in bytes; 0: unknown. */
uint64_t watch_rss_bytes(pid_t pid);
uint64_t watch_peak_bytes(pid_t pid);

struct watch_page {
	const char *name;
	uint64_t answers, failures, bytes; /* bytes: of the last response */
	double slowest;			   /* seconds */
};

struct watch;

/* names: at most 4, then NULL; static. Returns NULL on failure. */
struct watch *watch_start(const char *http, double least, const char *const *names);
/* Ends the thread; the pages requested, in *pages, are valid until watch_free(). */
unsigned int watch_stop(struct watch *watch, const struct watch_page **pages);
void watch_free(struct watch *watch);

#endif
