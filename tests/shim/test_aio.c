/* SPDX-License-Identifier: BSD-3-Clause */
/* test_aio.c - what POSIX aio reads and writes is unknown for the task that requests it, not 0. */
#include "harness.h"

#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unseen_io.h"

#define BYTES 100000u

static const char *path;
static char buf[BYTES];

static struct aiocb request(int fd, int operation)
{
	struct aiocb a;

	memset(&a, 0, sizeof(a));
	a.aio_fildes = fd;
	a.aio_buf = buf;
	a.aio_nbytes = sizeof(buf);
	a.aio_lio_opcode = operation;
	a.aio_sigevent.sigev_notify = SIGEV_NONE;
	return a;
}

static void wait_for(struct aiocb *a)
{
	const struct aiocb *const list[] = {a};

	while (aio_error(a) == EINPROGRESS)
		aio_suspend(list, 1, NULL);
	assert_int_equal(aio_return(a), BYTES);
}

static int list_of(struct aiocb *a)
{
	struct aiocb *list[] = {a};

	return lio_listio(LIO_WAIT, list, 1, NULL);
}

static int list64_of(struct aiocb64 *a)
{
	struct aiocb64 *list[] = {a};

	return lio_listio64(LIO_NOWAIT, list, 1, NULL);
}

static uint64_t unknown_of(const struct harness_task *h)
{
	return task_slot(h->owner)->count_unknown & CREMA_FILE_COUNTS;
}

static void each_way_is_unknown(void **state)
{
	int fd = open(path, O_RDWR);

	(void)state;
	for (int way = 0; way < 6; way++) {
		struct harness_task h = harness_begin();
		struct aiocb a = request(fd, way == 5 ? LIO_WRITE : LIO_READ);
		struct aiocb64 *a64 = (void *)&a; /* the same on 64 bits */

		assert_int_equal(unknown_of(&h), 0);
		errno = ECHILD;
		assert_int_equal(way == 0   ? aio_read(&a)
				 : way == 1 ? aio_read64(a64)
				 : way == 2 ? aio_write(&a)
				 : way == 3 ? aio_write64(a64)
				 : way == 4 ? list_of(&a)
					    : list64_of(a64),
				 0);
		assert_int_equal(errno, ECHILD);
		wait_for(&a);
		assert_int_equal(unknown_of(&h), CREMA_FILE_COUNTS);
		harness_end(&h);
		harness_free(&h);
	}
	close(fd);
	assert_true(crema_shm->unseen_io == CREMA_UNSEEN_AIO);
	assert_int_equal(crema_shm->totals.count_unknown & CREMA_FILE_COUNTS, CREMA_FILE_COUNTS);
}

static void *other_thread(void *arg)
{
	struct aiocb a = request(open(path, O_RDONLY), LIO_READ);

	(void)arg;
	assert_int_equal(aio_read(&a), 0);
	wait_for(&a);
	close(a.aio_fildes);
	return NULL;
}

/* A task that uses none is exact, also after another's; a library's own thread asks for any. */
static void only_tasks_that_may_have_asked(void **state)
{
	struct harness_task h = harness_begin();
	int fd = open(path, O_RDONLY);
	pthread_t id;

	(void)state;
	assert_int_equal(read(fd, buf, 1000), 1000);
	close(fd);
	assert_int_equal(unknown_of(&h), 0);
	assert_int_equal(pthread_create(&id, NULL, other_thread, NULL), 0);
	pthread_join(id, NULL);
	assert_int_equal(unknown_of(&h), CREMA_FILE_COUNTS);
	harness_end(&h);
	harness_free(&h);
}

static void refusals_are_libcs(void **state)
{
	struct aiocb a = request(-1, LIO_READ), *list[] = {&a};

	(void)state;
	a.aio_reqprio = -1;
	assert_int_equal(aio_read(&a), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(lio_listio(77, list, 1, NULL), -1);
	assert_int_equal(errno, EINVAL);
}

static int arm(void **state)
{
	(void)state;
	harness_arm();
	path = strdup(harness_file("input", BYTES));
	return 0;
}

static int clean(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_way_is_unknown),
		cmocka_unit_test(only_tasks_that_may_have_asked),
		cmocka_unit_test(refusals_are_libcs),
	};

	return cmocka_run_group_tests_name("shim aio", tests, arm, clean);
}
