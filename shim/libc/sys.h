/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sys.h - raw system calls and clocks for the shim.
 *
 * Raw, because libc's own functions set errno and may be interposed (by us or by another preload).
 * Every call returns what the kernel returned: a value >= 0 or -errno. Safe in a vfork child, in a
 * signal handler and from any thread.
 */
#ifndef CREMA_SHIM_LIBC_SYS_H
#define CREMA_SHIM_LIBC_SYS_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "ticks.h"

static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	long r;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#else
#error "crema's shim knows x86_64 and aarch64"
#endif
}

#define SYS0(n) sys6(n, 0, 0, 0, 0, 0, 0)
#define SYS1(n, a) sys6(n, (long)(a), 0, 0, 0, 0, 0)
#define SYS2(n, a, b) sys6(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define SYS3(n, a, b, c) sys6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define SYS4(n, a, b, c, d) sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

static inline int sys_open(const char *path, int flags, int mode)
{
	return (int)SYS4(SYS_openat, AT_FDCWD, path, flags, mode);
}

static inline long sys_read(int fd, void *buf, unsigned long n)
{
	return SYS3(SYS_read, fd, buf, n);
}

static inline void sys_close(int fd)
{
	SYS1(SYS_close, fd);
}

static inline int sys_gettid(void)
{
	return (int)SYS0(SYS_gettid);
}

static inline int sys_getpid(void)
{
	return (int)SYS0(SYS_getpid);
}

/* Reads a small file in one read; returns its length, or -errno. The text is NUL-terminated. */
static inline long sys_slurp(const char *path, char *buf, unsigned long size)
{
	int fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
	long n;

	if (fd < 0)
		return fd;
	n = sys_read(fd, buf, size - 1);
	sys_close(fd);
	if (n >= 0)
		buf[n] = 0;
	return n;
}

/* libc's clock_gettime uses the vDSO if there is one; it cannot fail with the clocks used here. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t = {0, 0};

	if (clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* CPU time of a thread of this process by its tid; 0 if it is gone. */
static inline uint64_t thread_cpu_ns(uint32_t tid)
{
	struct timespec t = {0, 0};
	/* per-thread, CPUCLOCK_SCHED: the kernel's ABI */
	long clock = (long)(~(unsigned long)tid << 3 | 6);

	if (SYS2(SYS_clock_gettime, clock, &t) < 0)
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t ticks(void)
{
	return crema_ticks();
}

#endif
