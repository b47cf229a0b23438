/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ticks.h - the processor's counter: the unit of the starts of calls and tasks in shared memory
 * (crema_shm.tsc_mult).
 */
#ifndef CREMA_CONTRACT_TICKS_H
#define CREMA_CONTRACT_TICKS_H

#include <stdint.h>

static inline uint64_t crema_ticks(void)
{
#if defined(__x86_64__)
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
#else
	uint64_t v;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#endif
}

/* Nanoseconds of a difference of counts; mult: crema_shm.tsc_mult. */
static inline uint64_t crema_ticks_ns(uint64_t ticks, uint64_t mult)
{
	__extension__ typedef unsigned __int128 wide;

	return (uint64_t)((wide)ticks * mult >> 32);
}

#endif
