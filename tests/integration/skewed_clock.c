/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * skewed_clock.c - a preload that shifts a program's realtime clock by the seconds (a double) in
 * the file named by CREMA_TEST_CLOCK, initially and whenever that changes. Other clocks are
 * unchanged.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile double *shift(void)
{
	static const double none;
	static const volatile double *at;

	if (!at) {
		const char *path = getenv("CREMA_TEST_CLOCK");
		int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
		void *m = fd < 0 ? MAP_FAILED
				 : mmap(NULL, sizeof(double), PROT_READ, MAP_SHARED, fd, 0);

		if (fd >= 0)
			close(fd);
		at = m == MAP_FAILED ? &none : m;
	}
	return at;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, ts);
	long long ns;

	if (rc || clock != CLOCK_REALTIME)
		return rc;
	ns = ts->tv_sec * 1000000000ll + ts->tv_nsec + (long long)(*shift() * 1e9);
	ts->tv_sec = ns / 1000000000;
	ts->tv_nsec = ns % 1000000000;
	return 0;
}

int gettimeofday(struct timeval *tv, void *zone)
{
	struct timespec ts;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &ts);
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *to)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (to)
		*to = ts.tv_sec;
	return ts.tv_sec;
}
