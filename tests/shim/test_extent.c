/* SPDX-License-Identifier: BSD-3-Clause */
/* test_extent.c - extents of files in the ring: merged, refused when it is full, never wrong. */
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/count/fd.h"
#include "shim/python/notify.h"

static const char *path;

/* What was added to the ring since the last call: bytes and extents. */
static uint64_t taken(uint64_t *extents)
{
	uint64_t bytes = 0;

	*extents = 0;
	for (; crema_shm->extents_tail != crema_shm->extents_head; crema_shm->extents_tail++) {
		struct crema_extent *e =
			&crema_shm->extent[crema_shm->extents_tail % CREMA_SHM_EXTENTS];

		assert_true(e->row > 0 && e->row <= CREMA_SHM_FILES);
		bytes += e->bytes;
		*extents += 1;
		e->row = 0;
	}
	return bytes;
}

static void reads_in_a_row_are_one_stretch(void **state)
{
	struct harness_task h = harness_begin();
	int fd = open(path, O_RDONLY);
	uint64_t n;
	char buf[100];

	(void)state;
	taken(&n);
	for (int i = 0; i < 50; i++)
		assert_int_equal(read(fd, buf, 100), 100);
	assert_int_equal(lseek(fd, 1000, SEEK_SET), 1000);
	assert_int_equal(read(fd, buf, 100), 100);
	assert_int_equal(read(fd, buf, 100), 100);
	close(fd);
	harness_end(&h);
	assert_int_equal(taken(&n), 5200);
	assert_int_equal(n, 2);
	harness_free(&h);
}

static void a_full_ring_refuses(void **state)
{
	struct harness_task h = harness_begin();
	int fd = open(path, O_RDONLY);
	uint64_t n, bytes;
	char buf[10];

	(void)state;
	taken(&n);
	for (unsigned i = 0; i < 3 * CREMA_SHM_EXTENTS; i++)
		assert_int_equal(pread(fd, buf, 10, i % 2 ? 0 : 500), 10);
	close(fd);
	harness_end(&h);
	bytes = taken(&n);
	/* All extents in it are right; missing ones are missing from the sum. */
	assert_int_equal(bytes, 10 * n);
	assert_true(n >= CREMA_SHM_EXTENTS - CREMA_SHM_THREADS && n <= CREMA_SHM_EXTENTS);
	harness_free(&h);
}

enum { SHARERS = 4, EACH = 900, APART = 25 };

/* Reads 10 bytes at each of its positions, none of which follows the previous one. */
static void *reader(void *arg)
{
	struct harness_task h = harness_begin();
	int fd = open(path, O_RDONLY), first = *(int *)arg * EACH;
	char buf[10];

	for (int i = 0; i < EACH; i++)
		if (pread(fd, buf, 10, (first + i) * APART) != 10)
			abort();
	close(fd);
	harness_end(&h);
	harness_free(&h);
	return NULL;
}

static void share_once(void)
{
	uint8_t seen[SHARERS * EACH] = {0};
	int number[SHARERS] = {0, 1, 2, 3};
	pthread_t threads[SHARERS];
	uint64_t n;

	for (int i = 0; i < SHARERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reader, &number[i]), 0);
	for (int i = 0; i < SHARERS; i++)
		pthread_join(threads[i], NULL);
	for (uint64_t at = crema_shm->extents_tail; at != crema_shm->extents_head; at++) {
		struct crema_extent *e = &crema_shm->extent[at % CREMA_SHM_EXTENTS];

		assert_int_equal(e->bytes, 10);
		assert_int_equal(e->offset % APART, 0);
		seen[e->offset / APART]++;
	}
	for (int i = 0; i < SHARERS * EACH; i++)
		assert_int_equal(seen[i], 1);
	assert_int_equal(taken(&n), SHARERS * EACH * 10);
}

/* Concurrent additions by several threads are all there, each extent once. */
static void threads_share_the_ring(void **state)
{
	uint64_t n;

	(void)state;
	taken(&n);
	for (int i = 0; i < 100; i++)
		share_once();
}

static void positions_that_are_shared_are_left_out(void **state)
{
	struct harness_task h = harness_begin();
	int fds[4], fd = open(path, O_RDONLY);
	uint64_t n;
	char buf[10];

	(void)state;
	taken(&n);
	fds[0] = dup(fd);
	fds[1] = fcntl(fd, F_DUPFD, 50);
	fds[2] = fcntl(fd, F_DUPFD_CLOEXEC, 50);
	fds[3] = dup2(fd, 77);
	for (int i = 0; i < 4; i++)
		assert_int_equal(read(fds[i], buf, 10), 10);
	assert_int_equal(read(fd, buf, 10), 10);
	assert_int_equal(pread(fds[0], buf, 10, 0), 10); /* with an explicit offset */
	for (int i = 0; i < 4; i++)
		close(fds[i]);
	close(fd);
	fd = open(path, O_RDONLY); /* the same number, another file description */
	assert_int_equal(read(fd, buf, 10), 10);
	close(fd);
	harness_end(&h);
	assert_int_equal(taken(&n), 20);
	harness_free(&h);
}

static void a_position_of_before_is_asked_for(void **state)
{
	uint64_t n;
	char buf[10];
	struct harness_task h;
	int fd;
	FILE *stream = fopen(path, "r"); /* libc opens it internally */

	(void)state;
	fd = fileno(stream);
	assert_int_equal(lseek(fd, 300, SEEK_SET), 300);
	h = harness_begin();
	taken(&n);
	assert_int_equal(read(fd, buf, 10), 10);
	harness_end(&h);
	assert_int_equal(crema_shm->extent[crema_shm->extents_tail % CREMA_SHM_EXTENTS].offset,
			 300);
	assert_int_equal(taken(&n), 10);
	fclose(stream);
	harness_free(&h);
}

/* Opened and moved by calls that are not interposed. */
static void a_position_nobody_saw_is_asked_for(void **state)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	struct harness_task h = harness_begin();
	uint64_t n;
	char buf[10];

	(void)state;
	notify_fd_closed(fd);
	assert_int_equal(syscall(SYS_lseek, fd, 5000, SEEK_SET), 5000);
	taken(&n);
	assert_int_equal(read(fd, buf, 10), 10);
	harness_end(&h);
	assert_int_equal(crema_shm->extent[crema_shm->extents_tail % CREMA_SHM_EXTENTS].offset,
			 5000);
	assert_int_equal(taken(&n), 10);
	close(fd);
	harness_free(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_in_a_row_are_one_stretch),
		cmocka_unit_test(a_full_ring_refuses),
		cmocka_unit_test(threads_share_the_ring),
		cmocka_unit_test(positions_that_are_shared_are_left_out),
		cmocka_unit_test(a_position_of_before_is_asked_for),
		cmocka_unit_test(a_position_nobody_saw_is_asked_for),
	};

	int failed;

	path = harness_file("extent", 100000);
	harness_arm();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
