/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blocked.h - the call stacks of long waits.
 *
 * A wait of a task that was longer than CREMA_BLOCKED_MS leaves a record: its class, its length,
 * its file or peer, and the return addresses that led to it. The record is made after the call has
 * returned, where the call's wait is charged, so a call that does not block pays nothing. If no
 * record is free, the wait is only counted. Each long wait, with a record or without, is added to
 * the row of its Python stack (byte_sample.h), which the record names.
 *
 * The addresses come from libunwind, opened with dlopen(RTLD_LOCAL) when the worker starts and
 * never linked: otherwise every C++ exception of the process would unwind through it. It validates
 * an address by writing a byte of it to its own pipe and reading it back; while it works for us
 * (`blocked_unwinding`) our wrappers count none of that. A program may close every descriptor that
 * it did not open, and then the pipe's numbers belong to another file. So both ends are checked
 * before each stack, and once they are gone no more stacks are taken. Without libunwind the records
 * have no addresses.
 *
 * Signals are held meanwhile, except those that a fault raises in the thread itself. errno is kept.
 */
#ifndef CREMA_SHIM_COUNT_BLOCKED_H
#define CREMA_SHIM_COUNT_BLOCKED_H

#include <stdint.h>

#include "shim/count/thread.h"

/* What a wait was for: a row of crema_shm->file, or a kind of descriptor. */
struct blocked_on {
	uint32_t on;	  /* enum crema_stack_on */
	uint32_t row;	  /* index + 1 into crema_shm->file, 0 = none */
	int fd;		  /* of CREMA_ON_SOCKET */
	const char *host; /* of CREMA_ON_HOST; NULL: unknown */
};

extern uint64_t blocked_threshold_ns; /* UINT64_MAX: none are taken */
extern __thread int blocked_unwinding;

/* Opens libunwind and starts recording. Armed; called once with the GIL, never in an intercepted
 * call. */
void blocked_open(void);

void blocked_take(struct crema_thread *t, int time_id, uint64_t waited_ns,
		  const struct blocked_on *on);

/* A wait of t's task was charged to this class. */
static inline void blocked_saw(struct crema_thread *t, int time_id, uint64_t waited_ns,
			       const struct blocked_on *on)
{
	if (unlikely(waited_ns >= blocked_threshold_ns))
		blocked_take(t, time_id, waited_ns, on);
}

/* The same for a wait for the GIL, which the interpreter splits into many short ones; this one
 * began at `start` (ticks) and is not the last if it timed out. */
void blocked_saw_gil(struct crema_thread *t, uint64_t waited_ns, uint64_t start, int timed_out);

/* While libunwind works for us: this is the reading end of its pipe. */
extern int blocked_pipe[2]; /* reading, writing end; -1: unknown */
static inline void blocked_reads(int fd)
{
	if (blocked_unwinding)
		STORE(&blocked_pipe[0], fd);
}

#endif
