/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_signals.c - a signal handler reads while its thread is inside a wrapper: both are counted.
 * The thread's timer is as fast as the kernel and the handler allow.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define READS 50000u
#define TASKS 20000u
#define ROW_BYTES 100u
#define HANDLER_BYTES 7u

static int handler_fd;
static volatile uint64_t handled, failed;

static void on_timer(int sig)
{
	int saved = errno;
	char buf[HANDLER_BYTES];

	(void)sig;
	if (pread(handler_fd, buf, sizeof(buf), 0) == (ssize_t)sizeof(buf))
		handled++;
	else
		failed++;
	errno = saved;
}

static timer_t start_timer(long every_ns)
{
	struct itimerspec often = {{0, every_ns}, {0, every_ns}};
	struct sigaction act = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
	struct sigevent to;
	timer_t timer;

	memset(&to, 0, sizeof(to));
	to.sigev_notify = SIGEV_THREAD_ID;
	to.sigev_signo = SIGUSR1;
	to._sigev_un._tid = (int)syscall(SYS_gettid);
	assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &to, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &often, NULL), 0);
	return timer;
}

/* Read calls of all files, summed over their rows. */
static uint64_t calls_of_rows(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < CREMA_SHM_FILES; i++)
		sum += crema_shm->file[i].read_calls;
	return sum;
}

static void run(const char *own, const char *handlers)
{
	uint64_t of_rows = calls_of_rows();
	struct harness_task h = harness_begin();
	struct crema_task *t;
	char buf[ROW_BYTES];
	int fd = open(own, O_RDONLY);
	timer_t timer;

	handled = 0;
	handler_fd = strcmp(own, handlers) ? open(handlers, O_RDONLY) : fd;
	timer = start_timer(30000);
	for (unsigned i = 0; i < READS; i++)
		if (pread(fd, buf, sizeof(buf), 0) != (ssize_t)sizeof(buf))
			failed++;
	timer_delete(timer);
	t = harness_end(&h);
	print_message("%ju reads by the handler\n", (uintmax_t)handled);
	assert_int_equal(failed, 0);
	assert_true(handled > 500);
	assert_int_equal(t->own.count[CREMA_C_read_calls], READS + handled);
	assert_int_equal(t->own.count[CREMA_C_read_bytes],
			 (uint64_t)READS * ROW_BYTES + handled * HANDLER_BYTES);
	/* a read may be in either of two rows, but none is lost */
	assert_int_equal(calls_of_rows() - of_rows, READS + handled);
	if (handler_fd != fd)
		close(handler_fd);
	close(fd);
	harness_free(&h);
}

static void reads_of_a_handler_are_counted(void **state)
{
	const char *own = harness_file("own", 1000);
	char name[4096];

	(void)state;
	snprintf(name, sizeof(name), "%s", own);
	run(name, name);
	run(name, harness_file("handlers", 1000));
	unlink(name);
}

/* Between two tasks a handler's read belongs to one of them or is unattributed. */
static void reads_while_tasks_end_are_counted(void **state)
{
	const struct crema_totals *totals = &crema_shm->totals;
	const char *own = harness_file("own", 1000);
	uint64_t before, tasks = 0;
	char buf[ROW_BYTES];
	timer_t timer;
	struct harness_task h;
	int fd;

	(void)state;
	handler_fd = fd = open(own, O_RDONLY);
	before = totals->tasks.count[CREMA_C_read_calls] +
		 totals->unattributed.count[CREMA_C_read_calls];
	handled = 0;
	timer = start_timer(30000);
	for (unsigned i = 0; i < TASKS; i++) {
		h = harness_begin();
		if (pread(fd, buf, sizeof(buf), 0) != (ssize_t)sizeof(buf))
			failed++;
		tasks += harness_end(&h)->own.count[CREMA_C_read_calls];
		harness_free(&h);
	}
	timer_delete(timer);
	h = harness_begin(); /* adds what was counted since the last one's end */
	harness_end(&h);
	harness_free(&h);
	print_message("%ju reads by the handler, %ju in tasks\n", (uintmax_t)handled,
		      (uintmax_t)tasks - TASKS);
	assert_int_equal(failed, 0);
	assert_true(handled > 500);
	assert_int_equal(totals->tasks.count[CREMA_C_read_calls] +
				 totals->unattributed.count[CREMA_C_read_calls] - before,
			 TASKS + handled);
	close(fd);
	unlink(own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_of_a_handler_are_counted),
		cmocka_unit_test(reads_while_tasks_end_are_counted),
	};

	return cmocka_run_group_tests_name("shim signals", tests, harness_setup, NULL);
}
