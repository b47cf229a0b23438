/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock.h - the calling thread's CPU clock, and whether it has lost its core, mostly without a
 * system call.
 *
 * The kernel clears the word rseq_cs of a thread's rseq area whenever the thread has been switched
 * out, moved to another core or sent a signal (rseq(2)). We put the address of a critical section
 * there that no thread ever enters. While it is still there, the thread has kept its core: its turn
 * on the core is the same, and its CPU clock has advanced by as much as the time stamp counter.
 *
 * Error of a kept CPU clock: 0.3 us, plus the time taken by a hypervisor, or by interrupts that the
 * kernel accounts for separately, since the last system call, which was 0.1 ms ago at most. So a
 * later clock can be behind an earlier one: take differences with clock_cpu_between(). Errors do
 * not add up: the ends of segments query the kernel (clock_cpu_asked_ns()).
 *
 * The kernel is queried every time if glibc is older than 2.35 or its rseq is switched off
 * (GLIBC_TUNABLES=glibc.pthread.rseq=0), if the kernel does not clear the word at each switch
 * (Linux 6.19 and newer on x86), in a thread whose area is not registered, and while the word holds
 * another library's section, which is never overwritten.
 *
 * Thread-local, no locks, errno is kept, signal handlers may call it.
 */
#ifndef CREMA_SHIM_COUNT_CLOCK_H
#define CREMA_SHIM_COUNT_CLOCK_H

#include <stdint.h>
#include <sys/resource.h>

/* Maximum age of the kernel's last value. */
#define CLOCK_KEPT_NS 100000u

/* Tests whether clocks can be kept here; while arming, once crema_shm exists. */
void clock_begin(void);
/* 1 if clock_begin() found that they can. */
int clock_is_kept(void);
/* For a new thread, or a forked child's: nothing is kept. */
void clock_forget(void);
/* The thread ends: restores the word. */
void clock_end(void);

uint64_t clock_cpu_ns(void);
uint64_t clock_cpu_asked_ns(void);
/* Changes whenever the thread may have been switched out since the last call. While it is
 * unchanged, the thread was not switched out. A signal also changes it where clocks are kept. */
uint64_t clock_turn(void);
/* The kernel's numbers of this thread; returns the turn in which they were read. */
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
