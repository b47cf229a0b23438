/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent.c - starts the agent without any effect that the host program can see.
 *
 * The host clones A and A clones B, both sharing memory and with exit signal 0; B execs the agent
 * and A exits without ever having exec'd. So A's end raises no SIGCHLD, only our __WCLONE wait
 * reaps it, and B belongs to init. One clone would not be enough: exec resets the exit signal.
 * Between clone and exec only raw system calls run, on separate stacks, with signals blocked.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "shim/count/digits.h"
#include "shim/libc/real.h"
#include "shim/libc/sys.h"
#include "shim/shim.h"
#include "switch.h"

#define STACK_BYTES 32768
#define STARTS_PER_MINUTE 12 /* a death takes 3 s to detect: about the most there can be */
#define DEAD_AFTER_NS 3000000000ull

extern char **environ;

struct birth {
	char *stack_b;
	const char *program;
	char *const *argv;
	char *const *envp;
	long result;
};

static char program[4200], remembered[512];

const char *agent_path(void)
{
	return program;
}

static void reset_signals(void)
{
	static const struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		unsigned long mask;
	} act; /* the default */

	for (int s = 1; s < 65; s++)
		SYS4(SYS_rt_sigaction, s, &act, NULL, 8);
}

static int become_agent(void *arg)
{
	struct birth *b = arg;
	unsigned long none = 0;
	int null = sys_open("/dev/null", O_RDWR, 0);

	reset_signals();
	SYS0(SYS_setsid);
	for (int fd = 0; fd < 3; fd++)
		SYS3(SYS_dup3, null, fd, 0);
	if (SYS3(SYS_close_range, 3, ~0u, 0) < 0)
		for (int fd = 3; fd < 65536; fd++)
			sys_close(fd);
	SYS4(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, 8);
	b->result = SYS3(SYS_execve, b->program, b->argv, b->envp);
	SYS1(SYS_exit_group, 127);
	return 127;
}

static int become_parent(void *arg)
{
	struct birth *b = arg;
	int r = clone(become_agent, b->stack_b + STACK_BYTES, CLONE_VM | CLONE_VFORK, b);

	if (r < 0)
		b->result = -EAGAIN;
	SYS1(SYS_exit_group, r < 0);
	return 0;
}

static long spawn_detached(const char *path, char *const *argv, char *const *envp)
{
	unsigned long all = ~0ul, old;
	struct birth b = {NULL, path, argv, envp, 0};
	char *stacks = mmap(NULL, (size_t)2 * STACK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int saved = errno, status = 0, a;
	struct rusage ru;
	long w = 0;

	if (stacks == MAP_FAILED)
		return -ENOMEM;
	b.stack_b = stacks;
	SYS4(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, 8);
	a = clone(become_parent, stacks + 2 * STACK_BYTES, CLONE_VM | CLONE_VFORK, &b);
	if (a < 0)
		b.result = -EAGAIN;
	else
		do
			w = SYS4(SYS_wait4, a, &status, 0x80000000u /* __WCLONE */, &ru);
		while (w == -EINTR);
	SYS4(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, 8);
	munmap(stacks, (size_t)2 * STACK_BYTES);
	if (w > 0)
		shim_leave_out_child(&ru);
	errno = saved;
	return b.result;
}

static int executable(const char *path)
{
	return SYS3(SYS_faccessat, AT_FDCWD, path, 1 /* X_OK */) == 0;
}

/* CREMA_AGENT, or next to the library, or ../../libexec/crema of an installed tree. */
static int find_program(void)
{
	static const char *const places[] = {"crema-agent", "../../libexec/crema/crema-agent"};
	const char *env = getenv("CREMA_AGENT"), *own = real_own_path(), *slash;
	size_t n;

	if (env && *env) {
		strncpy(program, env, sizeof(program) - 1);
		return executable(program) ? 0 : -ENOENT;
	}
	slash = strrchr(own, '/');
	n = slash ? (size_t)(slash - own) + 1 : 0;
	for (int i = 0; i < 2; i++) {
		memcpy(program, own, n);
		strcpy(program + n, places[i]);
		if (executable(program))
			return 0;
	}
	return -ENOENT;
}

static int wanted_in_agent(const char *v)
{
	static const char *const names[] = {"HOME=",
					    "XDG_CONFIG_HOME=",
					    "XDG_STATE_HOME=",
					    "CREMA_CALIBRATION=",
					    "CREMA_DIR=",
					    "CREMA_RUN_FILE=",
					    "CREMA_RUN_NAME=",
					    "CREMA_TOKEN_FILE=",
					    "TMPDIR=",
					    "PATH=",
					    "CREMA_TEST_",
					    "CREMA_TLS",
					    "CREMA_SPOOL_BYTES=",
					    "CREMA_REDACT_KEYS=",
					    "CREMA_STUCK=",
					    "CREMA_SAMPLE_HZ=",
					    "CREMA_HEAP=",
					    "CREMA_INSECURE=",
					    "CREMA=",
					    "DASK_CONFIG=",
					    "DASK_ROOT_CONFIG=",
					    "VIRTUAL_ENV=",
					    "CONDA_PREFIX=",
					    "DASK_DISTRIBUTED__COMM__TLS__"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(v, names[i], strlen(names[i])))
			return 1;
	return 0;
}

static void number(char *to, uint64_t v)
{
	*put_number(to, v, 10) = 0;
}

/* 1 if the host is the reaper of orphans: the agent would become its child and show in its
 * waits. */
static int host_reaps_orphans(void)
{
	int reaper = 0;

	SYS2(SYS_prctl, PR_GET_CHILD_SUBREAPER, &reaper);
	return reaper || sys_getpid() == 1;
}

int agent_start(const char *to)
{
	char pid[24], start[24], *argv[12], *envp[40];
	int a = 0, e = 0;

	if (to != remembered)
		strncpy(remembered, to, sizeof(remembered) - 1);
	if (find_program())
		return -ENOENT;
	if (host_reaps_orphans())
		return -ENOTSUP;
	number(pid, crema_shm->pid);
	number(start, crema_shm->start_ticks);
	argv[a++] = (char *)"crema-agent";
	argv[a++] = (char *)"--shm";
	argv[a++] = (char *)(uintptr_t)shim_path();
	argv[a++] = (char *)"--pid";
	argv[a++] = pid;
	argv[a++] = (char *)"--start-ticks";
	argv[a++] = start;
	if (remembered[0]) {
		argv[a++] = (char *)"--collector";
		argv[a++] = remembered;
	}
	argv[a] = NULL;
	for (char **v = environ; *v && e < 38; v++)
		if (wanted_in_agent(*v))
			envp[e++] = *v;
	envp[e] = NULL;
	crema_shm->agent_starts++;
	return (int)spawn_detached(program, argv, envp);
}

/* Yama may keep processes of one user apart. This allows the agent to read our memory anyway: it
 * needs that to find Python's frames, free blocks, and paths that open() waits for. */
static void let_agent_look(void)
{
	static uint32_t allowed;
	uint32_t agent = LOAD(&crema_shm->agent_ready);
	const char *hz = getenv("CREMA_SAMPLE_HZ");

	if (!agent || agent == allowed ||
	    (crema_switch(getenv("CREMA_STUCK"), 1) == 0 && hz && !strcmp(hz, "0") &&
	     crema_switch(getenv("CREMA_HEAP"), 1) == 0))
		return;
	allowed = agent;
	SYS2(SYS_prctl, PR_SET_PTRACER, agent);
}

void agent_watch(void)
{
	static uint64_t minute, starts;
	uint64_t now = clock_ns(CLOCK_BOOTTIME);
	uint64_t beat = LOAD(&crema_shm->agent_heartbeat_boot_ns);

	let_agent_look();
	if (!beat)
		beat = crema_shm->armed_boot_ns;
	if (now - beat < DEAD_AFTER_NS || !program[0])
		return;
	if (now - minute > 60000000000ull) {
		minute = now;
		starts = 0;
	}
	if (starts >= STARTS_PER_MINUTE)
		return;
	starts++;
	shim_note(agent_start(remembered) ? "the agent had died; no other one could be started"
					  : "the agent had died; another one was started");
}
