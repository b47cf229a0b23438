/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * runqueue.h - how long the calling thread was ready to run but had no core, with few reads of the
 * kernel's number.
 *
 * A read opens a file of /proc: 2 to 4 us; threads that run tasks keep theirs open, up to
 * RUNQUEUE_KEPT of them. Two facts save most reads:
 * - The delay grows only while a thread is switched out. In the same turn on its core (clock.h) the
 *   last value is still valid.
 * - Consecutive short waits of one class can be charged including their delay ("held"): one read
 *   then subtracts it from all of them. At most 64 waits and 4 ms are held, which bounds the error
 *   of a class in a live thread; at the end of a segment nothing is held. Time that may be moved to
 *   another class (timer.h) is never held: held time stays in its class until it is settled.
 *
 * A switch between two held waits was a preemption: its delay is at most the time there that was
 * not CPU, and this much is not subtracted from the waits.
 *
 * The first read in a new thread makes the kernel build the thread's entries in /proc, which costs
 * 0.2 to 0.5 ms at the thread's end. The shim does not read for a thread until it has spent
 * RUNQUEUE_YOUNG_NS of its life without CPU: up to this much delay may be missing, and is then in
 * the thread's waits or unclassified. The wait before the first instruction, including clone(), is
 * taken from the clocks.
 *
 * Clocks that are read one after the other belong to one moment only if the thread keeps its core
 * meanwhile, which it often loses on a busy machine. A delay between reading the clocks and the
 * start of a wait, or between its end and reading them, is not part of the wait. If reading took
 * too long, the clocks are read again.
 *
 * Thread-local, no locks; errno is kept.
 */
#ifndef CREMA_SHIM_COUNT_RUNQUEUE_H
#define CREMA_SHIM_COUNT_RUNQUEUE_H

#include "shim/count/op.h"
#include "shim/count/thread.h"
#include "shim/libc/sys.h"

/* Upper bound for reading all clocks without preemption. */
#define RUNQUEUE_READING_NS 30000u
/* A new thread is not read before it has spent this long without CPU. */
#define RUNQUEUE_YOUNG_NS 100000u
/* 1 if the clocks, read since this tick, should be read again; *times counts the repeats. */
static inline int runqueue_read_again(uint64_t began, int *times)
{
	return unlikely(ticks_ns(ticks() - began) > RUNQUEUE_READING_NS) && ++*times < 3;
}

/* The delay so far, ns, or -errno, of the calling thread, which has just read its turn and
 * its CPU clock. */
int64_t runqueue_ns_at(uint64_t turn, uint64_t tick, uint64_t cpu_ns);
/* 1 if the thread is in the same turn as at the last read. */
int runqueue_looked_at(uint64_t turn);
/* The calling thread is new; pthread_create was called at that tick. */
void runqueue_born(uint64_t created_tick);
/* A new thread, or a forked child's: the kernel counts from 0 again. */
void runqueue_forget(void);

/* A wait of class time_id (-1: a class that cannot be held) begins: settles waits that are held of
 * another class, or from before a preemption. */
void runqueue_wait_begins(struct crema_thread *t, int time_id, uint64_t turn);
/* Charges a wait to time_id. Returns 1 if it is held; 0 if it is too long, or waits of another
 * class are held: the caller then reads the delay itself. */
int runqueue_hold(struct crema_thread *t, int time_id, const struct op_end *e);
/* The delay since the last read, for a wait that has just ended: returns the wait's part and
 * subtracts the rest from the held waits. */
uint64_t runqueue_of_wait(struct crema_thread *t, const struct op_end *e);
/* Nothing is held afterwards. */
void runqueue_settle(struct crema_thread *t, uint64_t turn);

#define RUNQUEUE_KEPT 32u
/* 1: threads may keep a descriptor. Set while arming. */
extern int runqueue_keeps;
/* The calling thread runs tasks: keeps its file open from the next read on, until
 * runqueue_drop(). */
void runqueue_keep(void);
void runqueue_drop(void);
/* The calling thread of a forked child: what it keeps is its parent's. */
void runqueue_keep_none(void);
/* A forked child: its parent's files. */
void runqueue_drop_all(void);

/* Own run queue delay so far in ns; -errno if the kernel does not report it. */
int64_t runqueue_delay_ns(void);

#endif
