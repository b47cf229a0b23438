/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock.h - the calling thread's CPU clock, and whether it has lost its core, mostly without asking
 * the kernel.
 *
 * The kernel clears the word rseq_cs of a thread's rseq area whenever the thread has been switched
 * out, moved to another core or sent a signal (rseq(2)). We put the address of a critical section
 * there that no thread ever enters. While it is still there, the thread has kept its core: its turn
 * on the core is the same, and its CPU clock has advanced by what the time stamp counter says.
 *
 * Error of a kept CPU clock: 0.3 us, and what interrupts that the kernel accounts for by themselves
 * or a hypervisor took since the last question, which is 0.1 ms ago at most. So a later clock can
 * be behind an earlier one: take differences with clock_cpu_between(). Errors do not add up: the
 * ends of segments ask (clock_cpu_asked_ns()).
 *
 * The kernel is asked every time where glibc is older than 2.35 or its rseq is switched off
 * (GLIBC_TUNABLES=glibc.pthread.rseq=0), where the kernel does not clear the word at each switch
 * (Linux 6.19 and newer on x86), in a thread whose area is not registered, and while somebody
 * else's section is in the word: it is never overwritten.
 *
 * Thread-local, no locks, errno is kept, a signal's handler may call it.
 */
#ifndef CREMA_SHIM_COUNT_CLOCK_H
#define CREMA_SHIM_COUNT_CLOCK_H

#include <stdint.h>
#include <sys/resource.h>

/* So old may a question be, at most. */
#define CLOCK_KEPT_NS 100000u

/* Tries whether clocks can be kept here; while arming, with crema_shm made. */
void clock_begin(void);
/* 1: they can, by clock_begin(). */
int clock_is_kept(void);
/* A new thread, or a forked child's: nothing is kept. */
void clock_forget(void);
/* The thread ends: the word is as it was before us. */
void clock_end(void);

uint64_t clock_cpu_ns(void);
uint64_t clock_cpu_asked_ns(void);
/* Changes whenever the thread may have been switched out since the last call: while it is the same,
 * the thread was not. A signal also changes it where clocks are kept. */
uint64_t clock_turn(void);
/* The kernel's numbers of this thread, and the turn in which it was asked. */
uint64_t clock_usage(struct rusage *ru);

static inline uint64_t clock_cpu_between(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

/* CPU since from_ns of a call that took elapsed_ns. */
static inline uint64_t clock_cpu_inside(uint64_t from_ns, uint64_t elapsed_ns)
{
	uint64_t cpu = clock_cpu_between(from_ns, clock_cpu_ns());

	return cpu < elapsed_ns ? cpu : elapsed_ns;
}

#endif
