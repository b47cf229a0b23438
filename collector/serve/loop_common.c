/* SPDX-License-Identifier: BSD-3-Clause */
/* loop_common.c - timers, signals, running and stopping, the same for every event loop. */
#include "collector/serve/loop_common.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define SIGNALS_MAX 65

struct loop_timer {
	struct loop_common *common;
	void (*fn)(void *arg);
	void *arg;
	struct loop_timer *next;
	int64_t due_ms; /* -1: off */
	bool dead;	/* unlinked and freed by run_timers(), which may be walking over it */
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

/* The address of a struct loop is that of its common part. */
static struct loop_common *common_of(const struct loop *loop)
{
	return (struct loop_common *)(uintptr_t)loop;
}

void loop_common_init(struct loop_common *common)
{
	loop_common_tick(common);
}

void loop_common_tick(struct loop_common *common)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	common->now_ms = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void loop_common_release(struct loop_common *common)
{
	struct loop_timer *timer;

	while ((timer = common->timers)) {
		common->timers = timer->next;
		free(timer);
	}
	if (common->signals) {
		loop_watch_free(common->signals->watch);
		close(common->signals->fd);
		pthread_sigmask(SIG_SETMASK, &common->signals->old_mask, NULL);
		free(common->signals);
	}
}

int loop_run(struct loop *loop)
{
	int err = 0;

	while (!err && !common_of(loop)->stop)
		err = loop_turn(loop, -1);
	return err;
}

void loop_stop(struct loop *loop)
{
	common_of(loop)->stop = true;
}

int64_t loop_now_ms(const struct loop *loop)
{
	return common_of(loop)->now_ms;
}

/* Timers: there are few, a list will do. */

struct loop_timer *loop_timer_new(struct loop *loop, void (*fn)(void *arg), void *arg)
{
	struct loop_timer *timer = calloc(1, sizeof(*timer));

	if (!timer)
		return NULL;
	timer->common = common_of(loop);
	timer->fn = fn;
	timer->arg = arg;
	timer->due_ms = -1;
	timer->next = timer->common->timers;
	timer->common->timers = timer;
	return timer;
}

void loop_timer_set(struct loop_timer *timer, int64_t ms)
{
	loop_common_tick(timer->common);
	timer->due_ms = ms < 0 ? -1 : timer->common->now_ms + ms;
}

void loop_timer_free(struct loop_timer *timer)
{
	if (!timer)
		return;
	timer->due_ms = -1;
	timer->dead = true;
}

int loop_common_wait_ms(const struct loop_common *common, int timeout_ms)
{
	const struct loop_timer *timer;
	struct timespec ts;
	int64_t now, left, wait = timeout_ms < 0 ? INT_MAX : timeout_ms;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
	for (timer = common->timers; timer; timer = timer->next) {
		if (timer->due_ms < 0)
			continue;
		left = timer->due_ms > now ? timer->due_ms - now : 0;
		if (left < wait)
			wait = left;
	}
	return wait == INT_MAX && timeout_ms < 0 ? -1 : (int)wait;
}

void loop_common_run_timers(struct loop_common *common)
{
	struct loop_timer **p, *timer;

	for (timer = common->timers; timer; timer = timer->next) {
		if (timer->due_ms < 0 || timer->due_ms > common->now_ms)
			continue;
		timer->due_ms = -1;
		timer->fn(timer->arg);
	}
	for (p = &common->timers; (timer = *p);) {
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
	common_of(loop)->signals = signals;
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
	if (!common_of(loop)->signals) {
		err = signals_start(loop);
		if (err)
			return err;
	}
	signals = common_of(loop)->signals;
	signals->handler[signo].fn = fn;
	signals->handler[signo].arg = arg;
	sigaddset(&signals->set, signo);
	if (signalfd(signals->fd, &signals->set, 0) < 0)
		return -errno;
	return -pthread_sigmask(SIG_BLOCK, &signals->set, NULL);
}
