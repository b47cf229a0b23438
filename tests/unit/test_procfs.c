/* SPDX-License-Identifier: BSD-3-Clause */
/* test_procfs.c - when a process has ended, with real processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/procfs.h"

static void *wait_for_the_end(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

static bool await(int pid, bool (*has)(int pid))
{
	struct timespec pause_time = {0, 10000000};

	for (int i = 0; i < 6000; i++, nanosleep(&pause_time, NULL)) {
		if (has(pid))
			return true;
	}
	return false;
}

static bool main_thread_ended(int pid)
{
	struct procfs_stat st;

	return procfs_stat(pid, 0, &st) == 0 && st.state == 'Z';
}

/* The test's two; a sanitizer may have more. */
static bool all_threads_are_counted(int pid)
{
	char path[64];
	struct procfs_stat st;
	unsigned int n = 0;
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir)))
		n += e->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n >= 2 && procfs_stat(pid, 0, &st) == 0 && (unsigned int)st.threads == n;
}

static bool has_ended(int pid)
{
	return procfs_ended(pid, 0);
}

/* As in a process that the kernel kills: its threads end one after the other, the main thread first
 * or later. */
static void test_ended_when_the_last_thread_has(void **state)
{
	struct procfs_stat st;
	pthread_t other;
	int pid = fork();

	(void)state;
	if (pid == 0) {
		alarm(120); /* ends it if the test fails first */
		if (pthread_create(&other, NULL, wait_for_the_end, NULL))
			_exit(1);
		pthread_exit(NULL);
	}
	assert_true(pid > 0);
	assert_true(await(pid, main_thread_ended));
	assert_int_equal(procfs_stat(pid, 0, &st), 0);
	assert_true(st.exiting);
	assert_true(await(pid, all_threads_are_counted));
	assert_int_equal(st.ppid, getpid());
	assert_false(procfs_ended(pid, st.start_ticks));
	assert_true(procfs_ended(pid, st.start_ticks + 1));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_true(await(pid, has_ended));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(procfs_ended(pid, 0));
	assert_int_equal(procfs_stat(getpid(), 0, &st), 0);
	assert_false(st.exiting);
	assert_false(procfs_ended(getpid(), st.start_ticks));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ended_when_the_last_thread_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
