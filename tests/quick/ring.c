/* SPDX-License-Identifier: BSD-3-Clause */
/* ring.c - reads of a file with io_uring, for test_worker.py: through liburing, libc's syscall(),
 * and its own system call instruction. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <liburing.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns the bytes read by the kernel's own threads (IOSQE_ASYNC), or -errno. */
long ring_read(const char *path, void *to, unsigned int bytes)
{
	int fd = open(path, O_RDONLY);
	struct io_uring_cqe *done;
	struct io_uring ring;
	struct io_uring_sqe *s;
	long got;

	got = io_uring_queue_init(4, &ring, 0);
	if (got < 0)
		return got;
	s = io_uring_get_sqe(&ring);
	io_uring_prep_read(s, fd, to, bytes, 0);
	s->flags |= IOSQE_ASYNC;
	got = io_uring_submit(&ring);
	if (got == 1 && !io_uring_wait_cqe(&ring, &done))
		got = done->res;
	io_uring_queue_exit(&ring);
	close(fd);
	return got;
}

/* A ring that is not closed. */
long ring_by_syscall(void)
{
	struct io_uring_params params;

	memset(&params, 0, sizeof(params));
	return syscall(__NR_io_uring_setup, 4, &params);
}

long ring_by_itself(void)
{
	struct io_uring_params params;
	long result = __NR_io_uring_setup;

	memset(&params, 0, sizeof(params));
#ifdef __x86_64__
	__asm__ volatile("syscall" : "+a"(result) : "D"(4), "S"(&params) : "rcx", "r11", "memory");
#else
	register long number __asm__("x8") = result, a __asm__("x0") = 4;
	register void *b __asm__("x1") = &params;

	__asm__ volatile("svc 0" : "+r"(a) : "r"(number), "r"(b) : "memory");
	result = a;
#endif
	return result;
}
