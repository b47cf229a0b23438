/* SPDX-License-Identifier: BSD-3-Clause */
/* loop_epoll.c - the event loop on level-triggered epoll: sources, watches, rounds. */
#include "collector/serve/loop_epoll.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS_MAX (LOOP_ROUND_MAX / LOOP_READ_MAX)

struct epoll_watch {
	struct epoll_source source;
	void (*fn)(void *arg);
	void *arg;
	bool paused;
};

int epoll_source_watch(struct epoll_source *source, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};

	if (source->events == events)
		return 0;
	if (epoll_ctl(epoll_loop_of(source)->epoll_fd, EPOLL_CTL_MOD, source->fd, &event))
		return -errno;
	source->events = events;
	return 0;
}

void *epoll_source_new(struct loop *loop, size_t size, int fd,
		       void (*ready)(struct epoll_source *source, uint32_t events))
{
	struct epoll_event event = {.events = EPOLLIN};
	struct epoll_loop *epoll = (struct epoll_loop *)loop;
	struct epoll_source *source = calloc(1, size);

	if (!source)
		return NULL;
	source->handle.loop = loop;
	source->ready = ready;
	source->fd = fd;
	source->events = EPOLLIN;
	event.data.ptr = source;
	if (epoll_ctl(epoll->epoll_fd, EPOLL_CTL_ADD, fd, &event)) {
		free(source);
		return NULL;
	}
	source->next = epoll->sources;
	if (source->next)
		source->next->prev = source;
	epoll->sources = source;
	return source;
}

void epoll_source_free(struct epoll_source *source)
{
	struct epoll_loop *loop = epoll_loop_of(source);

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

static void watch_ready(struct epoll_source *source, uint32_t events)
{
	struct epoll_watch *watch = (struct epoll_watch *)source;

	(void)events;
	if (!watch->paused)
		watch->fn(watch->arg);
}

static struct loop_handle *watch_new(struct loop *loop, int fd, void (*fn)(void *arg), void *arg)
{
	struct epoll_watch *watch = epoll_source_new(loop, sizeof(*watch), fd, watch_ready);

	if (!watch)
		return NULL;
	watch->fn = fn;
	watch->arg = arg;
	return &watch->source.handle;
}

static void watch_pause(struct loop_handle *handle, bool paused)
{
	struct epoll_watch *watch = (struct epoll_watch *)handle;
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = &watch->source};

	if (watch->paused == paused)
		return;
	/* Taken out, as a pipe whose other end is closed is reported even if nothing is asked for. */
	watch->paused = paused;
	epoll_ctl(epoll_loop_of(&watch->source)->epoll_fd, paused ? EPOLL_CTL_DEL : EPOLL_CTL_ADD,
		  watch->source.fd, &event);
}

static void watch_free(struct loop_handle *handle)
{
	epoll_source_free((struct epoll_source *)handle);
}

/* The loop */

static void bury(struct epoll_loop *loop)
{
	struct epoll_source *source;

	while ((source = loop->dead)) {
		loop->dead = source->next;
		free(source);
	}
}

static void epoll_free(struct loop *base)
{
	struct epoll_loop *loop = (struct epoll_loop *)base;
	struct epoll_source *source;

	loop_release(base);
	while ((source = loop->sources)) {
		if (source->ready == epoll_stream_ready)
			epoll_stream_release((struct epoll_stream *)source);
		else
			epoll_source_free(source);
	}
	bury(loop);
	close(loop->epoll_fd);
	free(loop);
}

static int turn(struct loop *base, int timeout_ms)
{
	struct epoll_loop *loop = (struct epoll_loop *)base;
	struct epoll_event event[EVENTS_MAX];
	struct epoll_source *source;
	int i, n;

	n = epoll_wait(loop->epoll_fd, event, EVENTS_MAX, loop_wait_ms(base, timeout_ms));
	if (n < 0 && errno != EINTR)
		return -errno;
	loop_tick(base);
	for (i = 0; i < n; i++) {
		source = event[i].data.ptr;
		if (!source->dead)
			source->ready(source, event[i].events);
	}
	loop_end_round(base);
	epoll_stream_send_all(loop);
	bury(loop);
	return 0;
}

static const struct loop_backend backend = {
	.name = "epoll",
	.free = epoll_free,
	.turn = turn,
	.stream_new = epoll_stream_new,
	.stream_send = epoll_stream_send,
	.stream_pause = epoll_stream_pause,
	.stream_finish = epoll_stream_finish,
	.stream_close = epoll_stream_close,
	.watch_new = watch_new,
	.watch_pause = watch_pause,
	.watch_free = watch_free,
};

struct loop *loop_epoll_new(void)
{
	struct epoll_loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return NULL;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0) {
		free(loop);
		return NULL;
	}
	loop_init(&loop->loop, &backend);
	return &loop->loop;
}
