/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_forked.c - a forked child that is measured itself, as the workers of a pool of processes
 * are: nothing that its parent has found out about its own shared memory counts there.
 */
#include "harness.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/python/notify.h"

#define MS 1000000ull

/* A child that uses CPU and ends. */
static void spin_in_a_child(uint64_t ns)
{
	pid_t child = fork();

	if (!child) {
		harness_spin(ns);
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static uint64_t children_cpu_ns(void)
{
	struct rusage ru;

	getrusage(RUSAGE_CHILDREN, &ru);
	return ((uint64_t)ru.ru_utime.tv_sec + (uint64_t)ru.ru_stime.tv_sec) * 1000 * MS +
	       ((uint64_t)ru.ru_utime.tv_usec + (uint64_t)ru.ru_stime.tv_usec) * 1000;
}

/* Runs the scene in a forked child that has been armed; it returns 0 if all is as it should be. */
static void in_an_armed_child(int (*scene)(void))
{
	const char *why;
	int status = -1;
	pid_t child = fork();

	if (!child) {
		notify_forked();
		if (shim_arm(&why))
			_exit(100);
		unlink(shim_path());
		_exit(scene());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static int counts_its_own_children(void)
{
	const struct crema_snapshot *s = &crema_shm->snapshot;

	/* before the first snapshot, too: a pool's process takes none until its first task ends */
	spin_in_a_child(20 * MS);
	shim_snapshot();
	if (s->children_cpu_ns != children_cpu_ns() || s->children_cpu_ns < 20 * MS)
		return 1;
	spin_in_a_child(20 * MS);
	shim_snapshot();
	return s->children_cpu_ns != children_cpu_ns() || s->children_cpu_ns < 40 * MS ? 2 : 0;
}

static int has_no_children(void)
{
	shim_snapshot();
	return crema_shm->snapshot.children_cpu_ns || crema_shm->snapshot.children_inblock ||
	       crema_shm->snapshot.children_oublock;
}

/* The kernel counts a forked child's own children from 0. */
static void children_are_the_childs_own(void **state)
{
	(void)state;
	shim_snapshot();
	in_an_armed_child(has_no_children);
	in_an_armed_child(counts_its_own_children);
}

/* Those that ended before the process was armed are not its workers' work. */
static int arm(void **state)
{
	spin_in_a_child(60 * MS);
	return harness_setup(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(children_are_the_childs_own),
	};

	return cmocka_run_group_tests_name("shim in forked children", tests, arm, NULL);
}
