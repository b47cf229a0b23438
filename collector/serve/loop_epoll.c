/* SPDX-License-Identifier: BSD-3-Clause */
/* loop_epoll.c - the event loop on level-triggered epoll: sources, listeners, watches, rounds. */
#include "collector/serve/loop_epoll.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_MAX 128
#define REST_MS 1000

struct loop_listener {
	struct loop_source source;
	void (*fn)(void *arg, int fd);
	void *arg;
	struct loop_timer *rest;
};

struct loop_watch {
	struct loop_source source;
	void (*fn)(void *arg);
	void *arg;
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

/* Listeners */

static void listener_wake(void *arg)
{
	loop_source_watch(&((struct loop_listener *)arg)->source, EPOLLIN);
}

static void listener_ready(struct loop_source *source, uint32_t events)
{
	struct loop_listener *listener = (struct loop_listener *)source;
	unsigned int i;
	int fd;

	(void)events;
	for (i = 0; i < LOOP_ACCEPT_MAX && !source->dead; i++) {
		fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			listener->fn(listener->arg, fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			loop_source_watch(source, 0);
			loop_timer_set(listener->rest, REST_MS);
		}
		if (errno != ECONNABORTED && errno != EINTR)
			return;
	}
}

struct loop_listener *loop_listener_new(struct loop *loop, int fd, void (*fn)(void *arg, int fd),
					void *arg)
{
	struct loop_listener *listener;

	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK))
		return NULL;
	listener = loop_source_new(loop, sizeof(*listener), fd, listener_ready);
	if (!listener)
		return NULL;
	listener->rest = loop_timer_new(loop, listener_wake, listener);
	if (!listener->rest) {
		loop_source_free(&listener->source);
		errno = ENOMEM;
		return NULL;
	}
	listener->source.owns_fd = true;
	listener->fn = fn;
	listener->arg = arg;
	return listener;
}

void loop_listener_close(struct loop_listener *listener)
{
	if (!listener)
		return;
	loop_timer_free(listener->rest);
	loop_source_free(&listener->source);
}

/* Watches */

static void watch_ready(struct loop_source *source, uint32_t events)
{
	struct loop_watch *watch = (struct loop_watch *)source;

	(void)events;
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

void loop_watch_free(struct loop_watch *watch)
{
	if (watch)
		loop_source_free(&watch->source);
}

/* The loop */

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
	loop_common_init(&loop->common);
	return loop;
}

static void bury(struct loop *loop)
{
	struct loop_source *source;

	while ((source = loop->dead)) {
		loop->dead = source->next;
		free(source);
	}
}

void loop_free(struct loop *loop)
{
	struct loop_source *source;

	if (!loop)
		return;
	loop_common_release(&loop->common);
	while ((source = loop->sources)) {
		if (source->ready == loop_stream_ready)
			loop_stream_release((struct loop_stream *)source);
		else
			loop_source_free(source);
	}
	bury(loop);
	close(loop->epoll_fd);
	free(loop);
}

int loop_turn(struct loop *loop, int timeout_ms)
{
	struct epoll_event event[EVENTS_MAX];
	struct loop_source *source;
	int i, n;

	n = epoll_wait(loop->epoll_fd, event, EVENTS_MAX,
		       loop_common_wait_ms(&loop->common, timeout_ms));
	if (n < 0 && errno != EINTR)
		return -errno;
	loop_common_tick(&loop->common);
	for (i = 0; i < n; i++) {
		source = event[i].data.ptr;
		if (!source->dead)
			source->ready(source, event[i].events);
	}
	loop_common_run_timers(&loop->common);
	if (loop->round_end)
		loop->round_end(loop->round_end_arg);
	loop_stream_send_all(loop);
	bury(loop);
	return 0;
}

void loop_set_round_end(struct loop *loop, void (*fn)(void *arg), void *arg)
{
	loop->round_end = fn;
	loop->round_end_arg = arg;
}
