/* SPDX-License-Identifier: BSD-3-Clause */
/* loop_listen.c - listeners: a watch that accepts, independent of the event loop. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collector/loop/loop.h"

#define REST_MS 1000

struct loop_listener {
	struct loop_watch *watch;
	struct loop_timer *rest;
	void (*fn)(void *arg, int fd);
	void *arg;
	int fd;
	bool accepting, closed; /* both: freed after the accepting call */
};

static void wake(void *arg)
{
	loop_watch_pause(((struct loop_listener *)arg)->watch, false);
}

static void on_ready(void *arg)
{
	struct loop_listener *listener = arg;
	unsigned int i;
	int fd;

	listener->accepting = true;
	for (i = 0; i < LOOP_ACCEPT_MAX && !listener->closed; i++) {
		fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			listener->fn(listener->arg, fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			loop_watch_pause(listener->watch, true);
			loop_timer_set(listener->rest, REST_MS);
		}
		if (errno != ECONNABORTED && errno != EINTR)
			break;
	}
	listener->accepting = false;
	if (listener->closed)
		free(listener);
}

struct loop_listener *loop_listener_new(struct loop *loop, int fd, void (*fn)(void *arg, int fd),
					void *arg)
{
	struct loop_listener *listener;

	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK))
		return NULL;
	listener = calloc(1, sizeof(*listener));
	if (!listener)
		return NULL;
	listener->fd = fd;
	listener->fn = fn;
	listener->arg = arg;
	listener->rest = loop_timer_new(loop, wake, listener);
	if (listener->rest)
		listener->watch = loop_watch_new(loop, fd, on_ready, listener);
	if (!listener->watch) {
		loop_timer_free(listener->rest);
		free(listener);
		return NULL;
	}
	return listener;
}

void loop_listener_close(struct loop_listener *listener)
{
	if (!listener)
		return;
	listener->closed = true;
	loop_timer_free(listener->rest);
	loop_watch_free(listener->watch);
	close(listener->fd);
	if (!listener->accepting)
		free(listener);
}
