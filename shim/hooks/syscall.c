/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syscall.c - what libc has no function for: io_uring rings (contract/unseen_io.h), which are made
 * by syscall() or by the exported functions of liburing, and waits for a futex, as Rust's and
 * Abseil's (gRPC's) locks are.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>

#include "unseen_io.h"
#include "shim/count/call.h"
#include "shim/count/op.h"
#include "shim/count/poll_rings.h"
#include "shim/libc/real.h"
#include "shim/shim.h"

#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#endif

#define EXPORT __attribute__((visibility("default")))

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static void made(const void *caller, long fd)
{
	/* uvloop's rings only watch descriptors */
	if (fd >= 0 && real_object_named(caller, "uvloop") && poll_rings_add((uint32_t)fd))
		return;
	if (shim_armed() && shim_same_process())
		crema_unseen_io(crema_shm, CREMA_UNSEEN_RING, 0);
}

static int waits_for_futex(long number, long operation)
{
	if (likely(number != SYS_futex))
		return 0;
	operation &= FUTEX_CMD_MASK;
	return operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET ||
	       operation == FUTEX_LOCK_PI || operation == FUTEX_WAIT_REQUEUE_PI;
}

long on_syscall(long number, long a, long b, long c, long d, long e, long f) __asm__("syscall");

/* Arguments that the caller did not pass are passed on as found in registers and on the stack. */
EXPORT long on_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	struct op op;
	long result;

	op.t = NULL;
	if (unlikely(shim_armed()) && waits_for_futex(number, b))
		wait_begin(&op, (const void *)a);
	if (op.t)
		call_begin(op.t, CREMA_CALL_syscall, (uint64_t)a, op.start);
	result = real.syscall(number, a, b, c, d, e, f);
	if (op.t) {
		call_end(op.t);
		wait_end_woken(&op, (int)result);
	}
	if (unlikely(number == SYS_io_uring_setup) && result >= 0)
		made(__builtin_return_address(0), result);
	return result;
}

/* The next function after ours, wherever it was loaded; without one the kernel has no rings. */
#define MAKES_RING(name, params, args)                                                             \
	EXPORT int name params                                                                     \
	{                                                                                          \
		int(*const behind) params = (int(*) params)real_find(#name, NULL);                 \
		int result = behind ? behind args : -ENOSYS;                                       \
		int saved = errno;                                                                 \
		if (result >= 0)                                                                   \
			made(NULL, -1);                                                            \
		errno = saved;                                                                     \
		return result;                                                                     \
	}

MAKES_RING(io_uring_queue_init, (unsigned int entries, void *ring, unsigned int flags),
	   (entries, ring, flags))
MAKES_RING(io_uring_queue_init_params, (unsigned int entries, void *ring, void *params),
	   (entries, ring, params))
MAKES_RING(io_uring_queue_init_mem,
	   (unsigned int entries, void *ring, void *params, void *memory, size_t bytes),
	   (entries, ring, params, memory, bytes))
MAKES_RING(io_uring_setup, (unsigned int entries, void *params), (entries, params))
