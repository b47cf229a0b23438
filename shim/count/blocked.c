/* SPDX-License-Identifier: BSD-3-Clause */
/* blocked.c - records of long waits. */
#define _GNU_SOURCE
#include "shim/count/blocked.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "shim/count/byte_sample.h"
#include "shim/count/task.h"
#include "shim/libc/real.h"
#include "shim/libc/sys.h"

#define DEFAULT_MS 20
#define MOST_MS 86400000u
/* Waits for the GIL with shorter gaps than this count as one. */
#define GIL_GAP_NS 1000000u
#define FIND_FDS 65536
#define HOST_BYTES 253		/* of a DNS name, at most */
#define FORK_WAIT_NS 100000000u /* reached only if a thread is stopped */

uint64_t blocked_threshold_ns = UINT64_MAX;
__thread int blocked_unwinding;
static int (*backtrace)(void **addresses, int size);

/* What pthread_atfork calls in every version of glibc; the name itself was in libpthread before
 * 2.34. Weak: musl's loader ends a program whose preload lacks a symbol. */
extern __attribute__((weak)) int __register_atfork(void (*prepare)(void), void (*parent)(void),
						   void (*child)(void), void *dso);
extern void *__dso_handle __attribute__((visibility("hidden")));

/* Milliseconds of CREMA_BLOCKED_MS; -1: not a number. */
static long wanted_ms(void)
{
	const char *v = getenv("CREMA_BLOCKED_MS");
	unsigned long ms = 0;

	if (!v || !*v)
		return DEFAULT_MS;
	for (; *v; v++) {
		if (*v < '0' || *v > '9' || ms > MOST_MS)
			return -1;
		ms = ms * 10 + (unsigned long)(*v - '0');
	}
	return (long)ms;
}

/* dlopen is found at run time: bound by name it would need a newer libc than the shim does. */
static void *find_backtrace(void)
{
	void *(*open)(const char *, int) = (void *(*)(const char *, int))real_find("dlopen", NULL);
	void *(*find)(void *, const char *) =
		(void *(*)(void *, const char *))real_find("dlsym", NULL);
	void *library = open && find ? open("libunwind.so.8", RTLD_LOCAL | RTLD_NOW) : NULL;

	return library ? find(library, "unw_backtrace") : NULL;
}

/* All but the signals that a fault in this thread raises. */
static void hold_signals(uint64_t *before)
{
	uint64_t held = ~(1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) | 1ull << (SIGFPE - 1) |
			  1ull << (SIGILL - 1) | 1ull << (SIGTRAP - 1));

	SYS4(SYS_rt_sigprocmask, SIG_BLOCK, &held, before, 8);
}

/*
 * The first lookup of a function holds a loader lock for microseconds. In a child forked at that
 * moment nothing would ever release it, so a fork waits until no thread is unwinding, and stacks
 * that are requested meanwhile are left out.
 */
static uint32_t forking, unwinders;

static void before_fork(void)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + FORK_WAIT_NS;

	__atomic_fetch_add(&forking, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&unwinders, __ATOMIC_SEQ_CST) && clock_ns(CLOCK_MONOTONIC) < end)
		SYS0(SYS_sched_yield);
}

static void after_fork(void)
{
	__atomic_fetch_sub(&forking, 1, __ATOMIC_SEQ_CST);
}

static void in_child(void)
{
	forking = 0;
	unwinders = 0;
}

static int unwinding_begins(void)
{
	__atomic_fetch_add(&unwinders, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&forking, __ATOMIC_SEQ_CST))
		return 1;
	__atomic_fetch_sub(&unwinders, 1, __ATOMIC_SEQ_CST);
	return 0;
}

/* The pipe of libunwind, as found at the first stack. */
int blocked_pipe[2] = {-1, -1};
static struct stat pipe_was;

static int is_the_pipe(int fd)
{
	struct stat st;

	return SYS2(SYS_fstat, fd, &st) == 0 && S_ISFIFO(st.st_mode) &&
	       st.st_dev == pipe_was.st_dev && st.st_ino == pipe_was.st_ino;
}

/* The other end is the other descriptor of the same pipe. */
static void find_pipe(void)
{
	if (SYS2(SYS_fstat, blocked_pipe[0], &pipe_was) < 0)
		return;
	for (int fd = 0; fd < FIND_FDS && blocked_pipe[1] < 0; fd++)
		if (fd != blocked_pipe[0] && is_the_pipe(fd))
			blocked_pipe[1] = fd;
}

/* False if the program has closed it. A version of libunwind without a pipe is fine, too. */
static int pipe_is_there(void)
{
	if (LOAD(&blocked_pipe[0]) < 0)
		return 1;
	return is_the_pipe(LOAD(&blocked_pipe[0])) && is_the_pipe(blocked_pipe[1]);
}

static uint32_t unwind(uint64_t *address)
{
	struct crema_thread *block = thread_block;
	uint64_t signals;
	int n = 0;

	if (!backtrace || blocked_unwinding)
		return 0;
	if (!pipe_is_there()) {
		backtrace = NULL;
		shim_note("blocked stacks: libunwind's pipe was closed, no more are taken");
		return 0;
	}
	hold_signals(&signals);
	if (!unwinding_begins())
		goto out;
	blocked_unwinding = 1;
	thread_block = NULL; /* and thread_adopt() finds none during this */
	n = backtrace((void **)address, CREMA_STACK_DEPTH);
	if (LOAD(&blocked_pipe[0]) >= 0 && LOAD(&blocked_pipe[1]) < 0)
		find_pipe();
	thread_block = block;
	blocked_unwinding = 0;
	__atomic_fetch_sub(&unwinders, 1, __ATOMIC_SEQ_CST);
out:
	SYS4(SYS_rt_sigprocmask, SIG_SETMASK, &signals, NULL, 8);
	return n > 0 ? (uint32_t)n : 0;
}

void blocked_open(void)
{
	uint64_t address[CREMA_STACK_DEPTH];
	long ms = wanted_ms();

	if (ms < 0) {
		shim_note("CREMA_BLOCKED_MS is not a number of milliseconds; 20 is used");
		ms = DEFAULT_MS;
	}
	if (!ms)
		return;
	backtrace = (int (*)(void **, int))find_backtrace();
	if (!backtrace)
		shim_note("blocked stacks: libunwind not found");
	else if (!__register_atfork ||
		 __register_atfork(before_fork, after_fork, in_child, &__dso_handle))
		backtrace = NULL;
	/* The first ones take milliseconds: libunwind reads the tables of every library on the
	 * stack. */
	for (int i = 0; i < 2; i++)
		unwind(address);
	crema_shm->blocked.threshold_ns = (uint64_t)ms * 1000000u;
	__atomic_store_n(&blocked_threshold_ns, (uint64_t)ms * 1000000u, __ATOMIC_RELEASE);
}

static struct crema_stack *claim(void)
{
	static uint32_t next;
	uint32_t at = ADD(&next, 1);

	for (uint32_t i = 0; i < CREMA_SHM_STACKS; i++) {
		struct crema_stack *s = &crema_shm->stack[(at + i) % CREMA_SHM_STACKS];

		if (row_claim(&s->state))
			return s;
	}
	return NULL;
}

static void describe(struct crema_stack *s, const struct blocked_on *on)
{
	socklen_t bytes = sizeof(s->peer);

	s->on = on->on;
	s->file = on->row    ? crema_shm->file[on->row - 1].path
		  : on->host ? arena_bulk_id(on->host, (uint32_t)strnlen(on->host, HOST_BYTES))
			     : 0;
	s->peer_bytes = 0;
	if (on->on == CREMA_ON_SOCKET && SYS3(SYS_getpeername, on->fd, s->peer, &bytes) == 0)
		s->peer_bytes = bytes < sizeof(s->peer) ? bytes : sizeof(s->peer);
}

void blocked_take(struct crema_thread *t, int time_id, uint64_t waited_ns,
		  const struct blocked_on *on)
{
	struct crema_task *task = task_slot(t->owner);
	struct crema_stack *s;
	int saved = errno;
	uint64_t python;

	if (!task)
		return;
	ADD(&crema_shm->blocked.calls[time_id], 1);
	ADD(&crema_shm->blocked.ns[time_id], waited_ns);
	python = byte_sample_wait(t, time_id, waited_ns);
	s = claim();
	if (!s)
		return;
	s->wait = (uint32_t)time_id;
	s->number = ADD(&crema_shm->blocked.recorded, 1);
	s->attempt = task->attempt;
	s->waited_ns = waited_ns;
	s->end_boot_ns = clock_ns(CLOCK_BOOTTIME);
	s->tid = t->tid;
	s->prefix = task->prefix;
	s->span = task->span;
	s->python = python;
	describe(s, on);
	s->depth = unwind(s->address);
	__atomic_store_n(&s->state, 2, __ATOMIC_RELEASE);
	errno = saved;
}

void blocked_saw_gil(struct crema_thread *t, uint64_t waited_ns, uint64_t start, int timed_out)
{
	static __thread uint64_t so_far_ns, last_end; /* of waits that timed out */
	static const struct blocked_on nothing;

	if (last_end && ticks_ns(start - last_end) < GIL_GAP_NS)
		waited_ns += so_far_ns;
	so_far_ns = timed_out ? waited_ns : 0;
	last_end = timed_out ? ticks() : 0;
	if (!timed_out)
		blocked_saw(t, CREMA_T_gil_wait, waited_ns, &nothing);
}
