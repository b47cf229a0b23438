/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * io_uring.c - where io_uring rings are created (contract/io_uring.h): libc's syscall(), and the
 * exported functions of liburing, which enters the kernel without libc.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "io_uring.h"
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
		crema_io_uring_seen(crema_shm, 0);
}

long on_syscall(long number, long a, long b, long c, long d, long e, long f) __asm__("syscall");

/* Arguments that the caller did not pass are passed on as found in registers and on the stack. */
EXPORT long on_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	long result;

	if (likely(number != SYS_io_uring_setup))
		return real.syscall(number, a, b, c, d, e, f);
	result = real.syscall(number, a, b, c, d, e, f);
	if (result >= 0)
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
