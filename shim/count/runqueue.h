/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * runqueue.h - how long the calling thread was ready to run but had no core, with few looks at the
 * kernel's number.
 *
 * A look opens a file of /proc: 2 to 4 us. Two facts save most of them:
 * - The delay grows only while a thread is switched out. As long as the count of its context
 *   switches stands, the last look is still true.
 * - Short waits of one class in a row can be charged with their delay still inside ("held"): one
 *   look takes it out of all of them. At most 16 waits and 1 ms are held, so that is how far a
 *   class may be ahead of the truth in a live thread; at the end of a segment nothing is held.
 * A switch between two held waits was a preemption: its delay is at most the time there that was
 * not CPU, and that much is left out of what is taken back from the waits.
 *
 * The first look in a new thread makes the kernel build the thread's entries in /proc, which costs
 * 0.2 to 0.5 ms at the thread's end. A thread is not looked at before it has spent
 * RUNQUEUE_YOUNG_NS of its life without CPU: so much of a thread's delay may be missing, and is in
 * its waits or unclassified then. What it waited before its first instruction is taken from the
 * clocks, clone() included.
 *
 * Clocks that are read one after the other tell of one moment only while the thread keeps its core,
 * and a busy machine takes it just then: a delay between reading the clocks and the start of a
 * wait, or between its end and reading them, is not part of the wait. If reading took long, they
 * are read again.
 *
 * Thread-local, no locks; errno is kept.
 */
#ifndef CREMA_SHIM_COUNT_RUNQUEUE_H
#define CREMA_SHIM_COUNT_RUNQUEUE_H

#include "shim/count/op.h"
#include "shim/count/thread.h"
#include "shim/libc/sys.h"

/* All clocks are read in less, if nobody takes the core. */
#define RUNQUEUE_READING_NS 30000u
/* So long a new thread can do without CPU and is not looked at. */
#define RUNQUEUE_YOUNG_NS 100000u
/* 1 if a reading that began at this tick should be done again; *times counts them. */
static inline int runqueue_read_again(uint64_t began, int *times)
{
	return unlikely(ticks_ns(ticks() - began) > RUNQUEUE_READING_NS) && ++*times < 3;
}

/* The delay so far, ns, or -errno, of the calling thread, which has just read how often it was
 * switched and its CPU clock. */
int64_t runqueue_ns_at(uint64_t switches, uint64_t tick, uint64_t cpu_ns);
/* 1 if nothing was switched since the last look. */
int runqueue_looked_at(uint64_t switches);
/* The calling thread is new; pthread_create was called at that tick. */
void runqueue_born(uint64_t created_tick);
/* A new thread, or a forked child's: the kernel counts from 0 again. */
void runqueue_forget(void);

/* A wait of class time_id (-1: of no class that can be held) begins: what is held of another class,
 * or from before a preemption, is settled. */
void runqueue_wait_begins(struct crema_thread *t, int time_id, uint64_t switches);
/* Charges a wait to time_id. Returns 1 if it is held; 0: too long, or others of another class are
 * held: the caller takes its own look. */
int runqueue_hold(struct crema_thread *t, int time_id, const struct op_end *e);
/* The delay since the last look, for a wait that has just ended: returns its part; what exceeds the
 * wait is taken out of the held ones. */
uint64_t runqueue_of_wait(struct crema_thread *t, const struct op_end *e);
/* Nothing is held afterwards. */
void runqueue_settle(struct crema_thread *t, uint64_t switches);

/* Own run queue delay so far in ns; -errno where the kernel does not tell. */
int64_t runqueue_delay_ns(void);

#endif
