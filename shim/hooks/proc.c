/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proc.c - start and end of threads and of the process.
 *
 * pthread_create is where the shim enters Python (bootstrap.h; without threads, an open in wrap.c):
 * before that call it touches nothing in the process. A thread's start routine is wrapped so that
 * its counters are folded when it returns; a thread-specific key (thread.c) does that for
 * pthread_exit and cancellation.
 */
#define _GNU_SOURCE
#include "shim/libc/real.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/count/runqueue.h"
#include "shim/count/thread.h"
#include "shim/hooks/bootstrap.h"
#include "shim/python/notify.h"
#include "shim/python/patch.h"
#include "shim/libc/sys.h"
#include "switch.h"

#define EXPORT __attribute__((visibility("default")))
#define STARTS 256

/* What a new thread will run; taken without a lock, because pthread_create may be called
 * anywhere. */
struct start {
	uint32_t used;
	void *(*routine)(void *);
	void *arg;
	uint64_t tick;
};

static struct start starts[STARTS];

static struct start *start_take(void *(*routine)(void *), void *arg)
{
	static uint32_t hint;
	uint32_t at = ADD(&hint, 1);

	for (uint32_t i = 0; i < STARTS; i++) {
		struct start *s = &starts[(at + i) % STARTS];
		uint32_t none = 0;

		if (LOAD(&s->used) ||
		    !__atomic_compare_exchange_n(&s->used, &none, 1, 0, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		s->routine = routine;
		s->arg = arg;
		s->tick = ticks();
		return s;
	}
	return NULL;
}

static void *run_thread(void *arg)
{
	struct start s = *(struct start *)arg;
	void *result;

	__atomic_store_n(&((struct start *)arg)->used, 0, __ATOMIC_RELEASE);
	thread_routine = s.routine;
	if (shim_armed()) {
		thread_enter();
		runqueue_born(s.tick);
	}
	result = s.routine(s.arg);
	if (shim_armed())
		thread_leave();
	return result;
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *),
			  void *arg)
{
	struct start *s;
	int r;

	if (unlikely(thread_block != NULL) && !shim_armed())
		notify_forked_thread();
	if (bootstrap_possible()) {
		bootstrap_try();
		bootstrap_thread();
	} else if (!shim_armed())
		return real.pthread_create(thread, attr, routine, arg);
	s = start_take(routine, arg);
	if (!s)
		return real.pthread_create(thread, attr, routine, arg);
	r = real.pthread_create(thread, attr, run_thread, s);
	if (r)
		STORE(&s->used, 0);
	return r;
}

static void goodbye(uint32_t how, int status)
{
	if (!shim_armed() || !shim_same_process())
		return;
	shim_snapshot();
	crema_shm->exit_status = status;
	__atomic_store_n(&crema_shm->goodbye, how, __ATOMIC_RELEASE);
}

EXPORT __attribute__((noreturn)) void _exit(int status)
{
	goodbye(2, status);
	for (;;)
		SYS1(SYS_exit_group, status);
}

EXPORT __attribute__((noreturn)) void _Exit(int status)
{
	goodbye(2, status);
	for (;;)
		SYS1(SYS_exit_group, status);
}

__attribute__((constructor)) static void constructor(void)
{
	shim_off = crema_switch(getenv("CREMA"), 1) == 0;
	bootstrap_watch();
	client_watch();
}

__attribute__((destructor)) static void destructor(void)
{
	goodbye(1, 0);
}
