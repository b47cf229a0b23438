/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat.h - functions that glibc 2.17 lacks. package/portable.mk includes it before each file of
 * agent and collector; the preloaded library does not need it.
 */
#ifndef PACKAGE_COMPAT_H
#define PACKAGE_COMPAT_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static inline ssize_t getrandom(void *p, size_t n, unsigned int flags)
{
	return syscall(SYS_getrandom, p, n, flags);
}

static inline int close_range(unsigned int first, unsigned int last, int flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

static inline void *reallocarray(void *p, size_t n, size_t size)
{
	if (size && n > SIZE_MAX / size) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, n * size);
}

/* The C library's own text of a known error; agent and collector never set a locale. */
static inline const char *crema_error_text(int error)
{
	return strerror(error);
}
#define strerrordesc_np crema_error_text

#endif
