/* SPDX-License-Identifier: BSD-3-Clause */
/* loop_timer.c - timers and signals. */
#include "collector/loop/loop_source.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define SIGNALS_MAX 65

struct loop_timer {
	struct loop *loop;
	void (*fn)(void *arg);
	void *arg;
	struct loop_timer *next;
	int64_t due_ms; /* -1: off */
	bool dead; /* unlinked and freed by loop_run_timers(), which may be traversing the list */
};

struct loop_signals {
	struct loop_watch *watch;
	int fd;
	sigset_t set, old_mask;
	struct {
		void (*fn)(void *arg, int signo);
		void *arg;
	} handler[SIGNALS_MAX];
};

void loop_tick(struct loop *loop)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	loop->now_ms = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void loop_release_timers(struct loop *loop)
{
	struct loop_timer *timer;

	while ((timer = loop->timers)) {
		loop->timers = timer->next;
		free(timer);
	}
	if (loop->signals) {
		loop_watch_free(loop->signals->watch);
		close(loop->signals->fd);
		pthread_sigmask(SIG_SETMASK, &loop->signals->old_mask, NULL);
		free(loop->signals);
	}
}

/* Timers: there are few, so a list is enough. */

struct loop_timer *loop_timer_new(struct loop *loop, void (*fn)(void *arg), void *arg)
{
	struct loop_timer *timer = calloc(1, sizeof(*timer));

	if (!timer)
		return NULL;
	timer->loop = loop;
	timer->fn = fn;
	timer->arg = arg;
	timer->due_ms = -1;
	timer->next = loop->timers;
	loop->timers = timer;
	return timer;
}

void loop_timer_set(struct loop_timer *timer, int64_t ms)
{
	loop_tick(timer->loop);
	timer->due_ms = ms < 0 ? -1 : timer->loop->now_ms + ms;
}

void loop_timer_free(struct loop_timer *timer)
{
	if (!timer)
		return;
	timer->due_ms = -1;
	timer->dead = true;
}

int loop_wait_ms(const struct loop *loop, int timeout_ms)
{
	const struct loop_timer *timer;
	struct timespec ts;
	int64_t now, left, wait = timeout_ms < 0 ? INT_MAX : timeout_ms;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
	for (timer = loop->timers; timer; timer = timer->next) {
		if (timer->due_ms < 0)
			continue;
		left = timer->due_ms > now ? timer->due_ms - now : 0;
		if (left < wait)
			wait = left;
	}
	return wait == INT_MAX && timeout_ms < 0 ? -1 : (int)wait;
}

void loop_run_timers(struct loop *loop)
{
	struct loop_timer **p, *timer;

	for (timer = loop->timers; timer; timer = timer->next) {
		if (timer->due_ms < 0 || timer->due_ms > loop->now_ms)
			continue;
		timer->due_ms = -1;
		timer->fn(timer->arg);
	}
	for (p = &loop->timers; (timer = *p);) {
		if (timer->dead) {
			*p = timer->next;
			free(timer);
		} else {
			p = &timer->next;
		}
	}
}

/* Signals */

static void signals_ready(void *arg)
{
	struct loop_signals *signals = arg;
	struct signalfd_siginfo info;
	unsigned int signo;

	while (read(signals->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		signo = info.ssi_signo;
		if (signo < SIGNALS_MAX && signals->handler[signo].fn)
			signals->handler[signo].fn(signals->handler[signo].arg, (int)signo);
	}
}

static int signals_start(struct loop *loop)
{
	struct loop_signals *signals = calloc(1, sizeof(*signals));
	int err;

	if (!signals)
		return -ENOMEM;
	sigemptyset(&signals->set);
	signals->fd = signalfd(-1, &signals->set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals->fd < 0) {
		err = -errno;
		goto out;
	}
	signals->watch = loop_watch_new(loop, signals->fd, signals_ready, signals);
	if (!signals->watch) {
		err = -errno;
		close(signals->fd);
		goto out;
	}
	pthread_sigmask(SIG_SETMASK, NULL, &signals->old_mask);
	loop->signals = signals;
	return 0;
out:
	free(signals);
	return err;
}

int loop_signal(struct loop *loop, int signo, void (*fn)(void *arg, int signo), void *arg)
{
	struct loop_signals *signals;
	int err;

	if (signo <= 0 || signo >= SIGNALS_MAX)
		return -EINVAL;
	if (!loop->signals) {
		err = signals_start(loop);
		if (err)
			return err;
	}
	signals = loop->signals;
	signals->handler[signo].fn = fn;
	signals->handler[signo].arg = arg;
	sigaddset(&signals->set, signo);
	if (signalfd(signals->fd, &signals->set, 0) < 0)
		return -errno;
	return -pthread_sigmask(SIG_BLOCK, &signals->set, NULL);
}
