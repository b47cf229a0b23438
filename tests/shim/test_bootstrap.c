/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_bootstrap.c - which interpreters the shim enters. This program exports the names of the C
 * API that the shim looks up, so to the shim it is a Python of the version that a test chooses.
 */
#include "harness.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/hooks/bootstrap.h"
#include "shim/python/py.h"

static const char *version;
static int audit_hooks, interpreter = 1;
char _PyRuntime[24];

static uintptr_t answer(const char *name)
{
	if (!strcmp(name, "Py_IsInitialized") || !strcmp(name, "PyGILState_GetThisThreadState") ||
	    !strcmp(name, "PyInterpreterState_Main") || !strcmp(name, "PyInterpreterState_Head"))
		return 1;
	if (!strcmp(name, "PyThreadState_GetInterpreter"))
		return (uintptr_t)interpreter;
	if (!strcmp(name, "Py_GetVersion"))
		return (uintptr_t)version;
	audit_hooks += !strcmp(name, "PySys_AddAuditHook");
	return 0;
}

/* The table has no parameter names. */
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wc2x-extensions"
#endif
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define PY(ret, name, params)                                                                      \
	ret name params                                                                            \
	{                                                                                          \
		return (ret)answer(#name);                                                         \
	}
#define PY_DATA(name) struct _object name;
PY_TABLE

/* The thread's state; NULL: it does not hold the GIL. */
static void *attached;

void *PyThreadState_GetUnchecked(void)
{
	return attached;
}

struct entered {
	int off, audit_hooks;
	char said[300];
};

/* In a child: a process can only be entered once. */
static struct entered enter(const char *python, void *state)
{
	struct entered e;
	int to[2], err[2], status = -1;
	pid_t child;
	ssize_t n;

	memset(&e, 0, sizeof(e));
	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(err), 0);
	child = fork();
	if (!child) {
		version = python;
		attached = state;
		dup2(err[1], 2);
		bootstrap_try();
		e.off = shim_off;
		e.audit_hooks = audit_hooks;
		_exit(write(to[1], &e, sizeof(e)) != sizeof(e));
	}
	close(err[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(read(to[0], &e, sizeof(e)), sizeof(e));
	n = read(err[0], e.said, sizeof(e.said) - 1);
	e.said[n > 0 ? n : 0] = 0;
	close(to[0]);
	close(to[1]);
	close(err[0]);
	return e;
}

static const char with_gil[] = "3.13.1 (main, Dec  4 2024, 18:05:56) [GCC 12.2.0]";
#define STATE ((void *)1) /* as PyGILState_GetThisThreadState() returns */

static void a_python_with_the_gil_is_entered(void **state)
{
	struct entered e = enter(with_gil, STATE);

	(void)state;
	assert_int_equal(e.off, 0);
	assert_int_equal(e.audit_hooks, 1);
	assert_string_equal(e.said, "");
}

static void check_refused(const char *python)
{
	struct entered e = enter(python, STATE);

	assert_int_equal(e.off, 1);
	assert_int_equal(e.audit_hooks, 0);
	assert_string_equal(e.said,
			    "crema: this process runs unmeasured: this free-threaded Python is "
			    "not supported; use 3.14 or newer, or a build with the GIL\n");
}

/* One that lacks what stands in for the GIL; q/test_many_threads.py has one that does not. */
static void a_python_without_the_gil_is_not(void **state)
{
	uint64_t free_threaded = 1;

	(void)state;
	check_refused("3.13.1 experimental free-threading build (main, Dec  4 2024) [GCC]");
	check_refused("3.14.0 free-threading build (main, Oct  7 2025, 15:34:21) [Clang 20.1.4 ]");
	/* Its offsets show it, too. */
	memcpy(_PyRuntime, "xdebugpy", 8);
	memcpy(_PyRuntime + 16, &free_threaded, 8);
	check_refused("3.17.0 (main, Oct  7 2027, 15:34:21) [GCC]");
	memset(_PyRuntime, 0, sizeof(_PyRuntime));
}

static void other_threads_and_interpreters_wait(void **state)
{
	struct entered e = enter(with_gil, NULL); /* without the GIL */

	(void)state;
	assert_int_equal(e.off + e.audit_hooks, 0);
	e = enter(with_gil, (void *)2); /* another thread's */
	assert_int_equal(e.off + e.audit_hooks, 0);
	interpreter = 2;
	e = enter(with_gil, STATE);
	interpreter = 1;
	assert_int_equal(e.off + e.audit_hooks, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_python_with_the_gil_is_entered),
		cmocka_unit_test(a_python_without_the_gil_is_not),
		cmocka_unit_test(other_threads_and_interpreters_wait),
	};

	return cmocka_run_group_tests_name("shim bootstrap", tests, NULL, NULL);
}
