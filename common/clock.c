/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.c - clocks in nanoseconds. */
#include "common/clock.h"

#include <time.h>

static uint64_t read_clock(clockid_t id)
{
	struct timespec t = {0, 0};

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t clock_boot_ns(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

uint64_t clock_mono_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_real_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

uint64_t clock_thread_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}
