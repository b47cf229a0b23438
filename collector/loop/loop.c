/* SPDX-License-Identifier: BSD-3-Clause */
/* loop.c - the event loop on level-triggered epoll: sources, watches, rounds. */
#include "collector/loop/loop_source.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"

#define EVENTS_MAX (LOOP_ROUND_MAX / LOOP_READ_MAX)

struct loop_watch {
	struct loop_source source;
	void (*fn)(void *arg);
	void *arg;
	bool paused;
};

int loop_source_watch(struct loop_source *source, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};

	if (source->events == events)
		return 0;
	if (epoll_ctl(source->loop->epoll_fd, EPOLL_CTL_MOD, source->fd, &event))
		return -errno;
	source->events = events;
	return 0;
}

void *loop_source_new(struct loop *loop, size_t size, int fd,
		      void (*ready)(struct loop_source *source, uint32_t events))
{
	struct epoll_event event = {.events = EPOLLIN};
	struct loop_source *source = calloc(1, size);

	if (!source)
		return NULL;
	source->loop = loop;
	source->ready = ready;
	source->fd = fd;
	source->events = EPOLLIN;
	event.data.ptr = source;
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event)) {
		free(source);
		return NULL;
	}
	source->next = loop->sources;
	if (source->next)
		source->next->prev = source;
	loop->sources = source;
	return source;
}

void loop_source_free(struct loop_source *source)
{
	struct loop *loop = source->loop;

	if (source->dead)
		return;
	if (source->next)
		source->next->prev = source->prev;
	if (source->prev)
		source->prev->next = source->next;
	else
		loop->sources = source->next;
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	if (source->owns_fd)
		close(source->fd);
	source->dead = true;
	source->next = loop->dead;
	loop->dead = source;
}

/* Watches */

static void watch_ready(struct loop_source *source, uint32_t events)
{
	struct loop_watch *watch = (struct loop_watch *)source;

	(void)events;
	if (!watch->paused)
		watch->fn(watch->arg);
}

struct loop_watch *loop_watch_new(struct loop *loop, int fd, void (*fn)(void *arg), void *arg)
{
	struct loop_watch *watch = loop_source_new(loop, sizeof(*watch), fd, watch_ready);

	if (!watch)
		return NULL;
	watch->fn = fn;
	watch->arg = arg;
	return watch;
}

void loop_watch_pause(struct loop_watch *watch, bool paused)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = &watch->source};

	if (watch->paused == paused)
		return;
	/* Removed from epoll, which always reports a pipe whose other end is closed. */
	watch->paused = paused;
	epoll_ctl(watch->source.loop->epoll_fd, paused ? EPOLL_CTL_DEL : EPOLL_CTL_ADD,
		  watch->source.fd, &event);
}

void loop_watch_free(struct loop_watch *watch)
{
	if (watch)
		loop_source_free(&watch->source);
}

/* The loop */

static void free_dead(struct loop *loop)
{
	struct loop_source *source;

	while ((source = loop->dead)) {
		loop->dead = source->next;
		free(source);
	}
}

struct loop *loop_new(void)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return NULL;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0) {
		free(loop);
		return NULL;
	}
	loop_tick(loop);
	return loop;
}

void loop_free(struct loop *loop)
{
	struct loop_source *source;

	if (!loop)
		return;
	loop_files_release(loop);
	loop_release_timers(loop);
	while ((source = loop->sources)) {
		if (source->ready == loop_stream_ready)
			loop_stream_release((struct loop_stream *)source);
		else
			loop_source_free(source);
	}
	free_dead(loop);
	close(loop->epoll_fd);
	free(loop);
}

/* A signal that ends the sleep early does no harm. */
static void rest(struct loop *loop)
{
	uint64_t now_ns = clock_mono_ns(), until_ns = loop->rest_until_ns;
	struct timespec left = {.tv_nsec = (long)(until_ns - now_ns)};

	loop->rest_until_ns = 0;
	if (now_ns < until_ns)
		nanosleep(&left, NULL);
}

void loop_rest(struct loop *loop, uint64_t ns)
{
	loop->rest_until_ns = clock_mono_ns() + ns;
}

int loop_turn(struct loop *loop, int timeout_ms)
{
	struct epoll_event event[EVENTS_MAX];
	struct loop_source *source;
	int i, n, wait_ms = loop_files_answered(loop) ? 0 : loop_wait_ms(loop, timeout_ms);

	if (loop->rest_until_ns)
		rest(loop);
	n = epoll_wait(loop->epoll_fd, event, EVENTS_MAX, wait_ms);
	if (n < 0 && errno != EINTR)
		return -errno;
	loop_tick(loop);
	loop_files_deliver(loop);
	for (i = 0; i < n; i++) {
		source = event[i].data.ptr;
		if (!source->dead)
			source->ready(source, event[i].events);
	}
	loop_run_timers(loop);
	if (loop->round_end)
		loop->round_end(loop->round_end_arg);
	loop_stream_send_all(loop);
	free_dead(loop);
	return 0;
}

int loop_run(struct loop *loop)
{
	int err = 0;

	while (!err && !loop->stop)
		err = loop_turn(loop, -1);
	return err;
}

void loop_stop(struct loop *loop)
{
	loop->stop = true;
}

int64_t loop_now_ms(const struct loop *loop)
{
	return loop->now_ms;
}

void loop_set_round_end(struct loop *loop, void (*fn)(void *arg), void *arg)
{
	loop->round_end = fn;
	loop->round_end_arg = arg;
}
