/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alloc.c - the interposed functions that allocate and free.
 *
 * They may be called before any constructor, by the loader, in signal handlers and in forked
 * children. The real ones are always those of the next object (real.h), so another allocator that
 * was preloaded behind this library goes on to serve all calls. Sanitizers bring their own
 * functions, and need to be called first.
 */
#define _GNU_SOURCE
#include "shim/libc/real.h"

#include <errno.h>

#include "shim/count/large.h"

#ifdef LARGE_INTERPOSED

#define EXPORT __attribute__((visibility("default")))

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static __attribute__((noinline)) void *recorded(void *p, size_t n)
{
	large_allocated(p, n);
	return p;
}

EXPORT void *malloc(size_t n)
{
	if (likely(n < LOAD(&large_least)))
		return real.malloc(n);
	return recorded(real.malloc(n), n);
}

/* A product that overflows may be small here; the real function fails then. */
EXPORT void *calloc(size_t n, size_t s)
{
	if (likely(n * s < LOAD(&large_least)))
		return real.calloc(n, s);
	return recorded(real.calloc(n, s), n * s);
}

static __attribute__((noinline)) void *large_realloc(void *p, size_t n)
{
	uint32_t block = large_take(p);
	void *to = real.realloc(p, n);

	if (!to && n)
		large_stays(block, p);
	else
		large_moved(block, to, n);
	return to;
}

EXPORT void *realloc(void *p, size_t n)
{
	if (likely(n < LOAD(&large_least)) && !large_may_hold(p))
		return real.realloc(p, n);
	return large_realloc(p, n);
}

/* By hand: glibc before 2.26 and other allocators do not have it. */
EXPORT void *reallocarray(void *p, size_t n, size_t s)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, s, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, bytes);
}

EXPORT void free(void *p)
{
	if (large_may_hold(p))
		large_freed(p);
	real.free(p);
}

EXPORT int posix_memalign(void **p, size_t a, size_t n)
{
	int r = real.posix_memalign(p, a, n);

	if (unlikely(n >= LOAD(&large_least)) && !r)
		large_allocated(*p, n);
	return r;
}

EXPORT void *aligned_alloc(size_t a, size_t n)
{
	if (likely(n < LOAD(&large_least)))
		return real.aligned_alloc(a, n);
	return recorded(real.aligned_alloc(a, n), n);
}

EXPORT void *memalign(size_t a, size_t n)
{
	if (likely(n < LOAD(&large_least)))
		return real.memalign(a, n);
	return recorded(real.memalign(a, n), n);
}

EXPORT void *valloc(size_t n)
{
	if (likely(n < LOAD(&large_least)))
		return real.valloc(n);
	return recorded(real.valloc(n), n);
}

EXPORT void *pvalloc(size_t n)
{
	if (likely(n < LOAD(&large_least)))
		return real.pvalloc(n);
	return recorded(real.pvalloc(n), n);
}

#endif
