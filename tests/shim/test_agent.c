/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_agent.c - starting the agent is invisible to the host: no SIGCHLD, nothing to wait for, no
 * descriptor; and the agent starts with a clean state.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int child_signals;

static void on_child(int sig)
{
	(void)sig;
	child_signals++;
}

static char script[256], out[300];

/* A program that records its environment. */
static void write_script(void)
{
	FILE *f;

	snprintf(script, sizeof(script), "%s/crema-agent-%d",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid());
	snprintf(out, sizeof(out), "%s.out", script);
	f = fopen(script, "w");
	assert_non_null(f);
	fprintf(f,
		"#!/bin/sh\n"
		"{ echo \"args $*\"; echo fds $(ls /proc/$$/fd | tr '\\n' ' ')\n"
		"echo preload=$LD_PRELOAD secret=$CREMA_SECRET\n"
		"grep -E '^(SigBlk|SigIgn)' /proc/self/status\n"
		"echo session $(cut -d' ' -f6 /proc/$$/stat) pid $$ parent $(cut -d' ' -f4 "
		"/proc/$$/stat)\n"
		"} > %s.tmp; mv %s.tmp %s\n",
		out, out, out);
	fclose(f);
	chmod(script, 0700);
}

static char *slurp_when_there(const char *path)
{
	static char text[4096];
	size_t n;
	FILE *f = NULL;

	for (int i = 0; i < 500 && !(f = fopen(path, "r")); i++)
		usleep(10000);
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = 0;
	fclose(f);
	return text;
}

static void the_host_notices_nothing(void **state)
{
	struct sigaction act;
	char *text;
	int fds, pid, session;

	(void)state;
	memset(&act, 0, sizeof(act));
	act.sa_handler = on_child;
	sigaction(SIGCHLD, &act, NULL);
	setenv("CREMA_AGENT", script, 1);
	setenv("LD_PRELOAD", "", 1);
	setenv("CREMA_SECRET", "do-not-pass", 1);
	fds = dup(0);
	close(fds);
	errno = 0;
	assert_int_equal(agent_start("127.0.0.1:9"), 0);
	assert_int_equal(errno, 0);
	text = slurp_when_there(out);
	usleep(100000); /* its end must not be visible either */
	assert_int_equal(child_signals, 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(dup(0), fds); /* no descriptor was left open */
	close(fds);
	assert_non_null(strstr(text, "--collector 127.0.0.1:9"));
	assert_non_null(strstr(text, "--shm "));
	assert_non_null(strstr(text, "preload= secret=\n"));
	assert_non_null(strstr(text, "SigBlk:\t0000000000000000"));
	assert_non_null(strstr(text, "SigIgn:\t0000000000000000"));
	assert_int_equal(sscanf(strstr(text, "session"), "session %d pid %d", &session, &pid), 2);
	assert_int_equal(session, pid);
}

static uint64_t boot_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* An agent without a heartbeat for three seconds, or without any since arming, is dead. */
static void a_dead_agent_is_started_again(void **state)
{
	static const struct {
		uint64_t beat_ago, armed_ago; /* ms */
		uint32_t starts;
	} cases[] = {{2500, 90000, 0}, {3500, 0, 1}, {0, 2500, 0}, {0, 3500, 1}};
	uint64_t armed = crema_shm->armed_boot_ns;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t starts = crema_shm->agent_starts;

		crema_shm->armed_boot_ns = boot_ns() - cases[i].armed_ago * 1000000;
		crema_shm->agent_heartbeat_boot_ns =
			cases[i].beat_ago ? boot_ns() - cases[i].beat_ago * 1000000 : 0;
		agent_watch();
		assert_int_equal(crema_shm->agent_starts - starts, cases[i].starts);
	}
	for (int i = 0; i < 20; i++) /* twelve a minute at most: two were above */
		agent_watch();
	assert_int_equal(crema_shm->agent_starts, 1 + 12);
	crema_shm->armed_boot_ns = armed;
}

/* The children that started the agents above were not the host's. */
static void starting_it_is_no_work_of_the_host(void **state)
{
	enum { TRUNCATED_NS = 2000 }; /* of each child, and of their sum */

	(void)state;
	shim_snapshot();
	assert_in_range(crema_shm->snapshot.children_cpu_ns, 0,
			(crema_shm->agent_starts + 1) * TRUNCATED_NS);
}

static void a_missing_agent_is_an_error(void **state)
{
	(void)state;
	setenv("CREMA_AGENT", "/no/such/agent", 1);
	assert_int_equal(agent_start("127.0.0.1:9"), -ENOENT);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static int arm(void **state)
{
	(void)state;
	harness_arm();
	write_script();
	return 0;
}

static int clean(void **state)
{
	(void)state;
	unlink(script);
	unlink(out);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_host_notices_nothing),
		cmocka_unit_test(a_dead_agent_is_started_again),
		cmocka_unit_test(starting_it_is_no_work_of_the_host),
		cmocka_unit_test(a_missing_agent_is_an_error),
	};

	return cmocka_run_group_tests_name("shim agent", tests, arm, clean);
}
