/* SPDX-License-Identifier: BSD-3-Clause */
/* run_child.c - see run_child.h. */
#include "collector/cmd/run_child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collector/cmd/command.h"
#include "collector/cmd/run_client.h"
#include "collector/doctor/process.h"
#include "collector/preload/preload.h"
#include "common/clock.h"
#include "common/procfs.h"
#include "wire.h"

#define NS_PER_MS UINT64_C(1000000)
#define LOOK_MS 20 /* at the agents that are left */

static const int passed[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

/* Blocked from here on, so that none is lost and each is taken where it is waited for. Ignored
 * signals (nohup) stay ignored, also in the command. */
static void take_signals(struct run_child *c)
{
	struct sigaction now;
	size_t i;

	sigemptyset(&c->taken);
	sigaddset(&c->taken, SIGCHLD);
	for (i = 0; i < sizeof(passed) / sizeof(*passed); i++) {
		if (!sigaction(passed[i], NULL, &now) && now.sa_handler != SIG_IGN)
			sigaddset(&c->taken, passed[i]);
	}
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &c->chld);
	sigprocmask(SIG_BLOCK, &c->taken, &c->before);
}

static void give_signals_back(const struct run_child *c)
{
	sigaction(SIGCHLD, &c->chld, NULL);
	sigprocmask(SIG_SETMASK, &c->before, NULL);
}

static void become(const struct run_child *c, char **command, int failed, pid_t parent)
{
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(STATUS_FAILED);
	give_signals_back(c);
	status = preload_exec(command);
	while (write(failed, "", 1) < 0 && errno == EINTR)
		;
	_exit(status);
}

/* Signals stay pending in a process that blocks them: there it can be seen which ones were sent to
 * the whole group. */
static void start_witness(struct run_child *c)
{
	pid_t parent = getpid(), pid = fork();
	sigset_t all;

	if (!pid) {
		sigfillset(&all);
		sigprocmask(SIG_BLOCK, &all, NULL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == parent)
			pause();
		_exit(0);
	}
	c->witness = pid > 0 ? pid : 0;
}

int run_child_start(struct run_child *c, char **command, const char *dir, uint64_t begin_mono_ns)
{
	pid_t self = getpid();
	int ends[2], rc;

	*c = (struct run_child){.failed = -1};
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	take_signals(c);
	c->pid = fork();
	if (!c->pid) {
		run_client_set(dir, begin_mono_ns);
		become(c, command, ends[1], self);
	}
	rc = c->pid < 0 ? -errno : 0;
	close(ends[1]);
	c->failed = ends[0];
	if (rc) {
		close(c->failed);
		give_signals_back(c);
		return rc;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	start_witness(c);
	return 0;
}

static bool is_pending(pid_t pid, int number)
{
	char text[4096], *at;

	if (procfs_slurp(text, sizeof(text), "/proc/%d/status", (int)pid) <= 0)
		return false;
	at = strstr(text, "\nShdPnd:");
	return at && strtoull(at + strlen("\nShdPnd:"), NULL, 16) >> (number - 1) & 1;
}

/* Whether that signal was sent to all processes of our group, and so to the command. */
static bool was_for_the_group(struct run_child *c, int number)
{
	struct timespec ts = {0, (long)(RUN_GROUP_MS * NS_PER_MS)};

	if (!c->witness || getpgid(c->pid) != getpgrp())
		return false;
	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
	if (!is_pending(c->witness, number))
		return false;
	kill(c->witness, SIGKILL);
	start_witness(c);
	return true;
}

/* Signals from the terminal or the kernel reach the command anyway. */
static void pass_on(struct run_child *c, const siginfo_t *info)
{
	if (info->si_code <= 0 && !was_for_the_group(c, info->si_signo))
		kill(c->pid, info->si_signo);
}

/* Reaps what has ended. Returns whether the command has. */
static bool reap(struct run_child *c)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == c->pid) {
			c->status = status;
			return true;
		}
	}
	return false;
}

void run_child_wait(struct run_child *c)
{
	siginfo_t info;
	char byte;

	while (!reap(c)) {
		if (sigwaitinfo(&c->taken, &info) > 0 && info.si_signo != SIGCHLD)
			pass_on(c, &info);
	}
	c->ran = read(c->failed, &byte, 1) != 1;
	close(c->failed);
	if (c->witness)
		kill(c->witness, SIGKILL);
}

static uint64_t number_of(const char *word)
{
	return word ? strtoull(word, NULL, 10) : 0;
}

static bool has_kept_all(pid_t pid)
{
	char name[32];

	return procfs_slurp(name, sizeof(name), "/proc/%d/comm", (int)pid) > 0 &&
	       !strcmp(name, CREMA_AGENT_WAITS "\n");
}

/* An agent below us that has only its last records left to send: a worker that the command left
 * behind goes on without us. */
static bool is_ending_agent(pid_t pid)
{
	struct procfs_stat st;
	struct process p;
	bool ending;

	if (procfs_stat(pid, 0, &st) || st.ppid != getpid() || has_kept_all(pid) ||
	    process_read(&p, pid))
		return false;
	ending = process_is_agent(&p) &&
		 procfs_ended((int)number_of(process_option(&p, "--pid")),
			      number_of(process_option(&p, "--start-ticks")));
	process_release(&p);
	return ending;
}

static bool has_ending_agents(void)
{
	const struct dirent *e;
	bool found = false;
	DIR *all;

	if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
		return false;
	all = opendir("/proc");
	while (all && !found && (e = readdir(all)))
		found = e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
			is_ending_agent((pid_t)strtol(e->d_name, NULL, 10));
	if (all)
		closedir(all);
	return found;
}

void run_child_agents(struct run_child *c)
{
	uint64_t end = clock_mono_ns() + RUN_AGENTS_MS * NS_PER_MS;
	struct timespec look = {0, (long)(LOOK_MS * NS_PER_MS)};
	siginfo_t info;

	while (has_ending_agents() && clock_mono_ns() < end) {
		if (sigtimedwait(&c->taken, &info, &look) > 0 && info.si_signo != SIGCHLD)
			return;
	}
}

int run_child_end(const struct run_child *c)
{
	struct rlimit none = {0, 0};
	sigset_t all;

	if (!WIFSIGNALED(c->status))
		return WEXITSTATUS(c->status);
	setrlimit(RLIMIT_CORE, &none); /* the command left its own */
	signal(WTERMSIG(c->status), SIG_DFL);
	sigemptyset(&all);
	sigaddset(&all, WTERMSIG(c->status));
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	raise(WTERMSIG(c->status));
	return 128 + WTERMSIG(c->status);
}
