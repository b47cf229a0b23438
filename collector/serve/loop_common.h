/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop_common.h - what every implementation of loop.h shares: timers, signals, listeners, running.
 *
 * An implementation's loop begins with a struct loop, each of its streams, watches and files with
 * a struct loop_handle; loop.c calls it through its struct loop_backend. Its turn() calls
 * loop_wait_ms() for the time to wait, loop_tick() after waiting, loop_end_round() after the
 * callbacks, and then sends what is queued.
 */
#ifndef COLLECTOR_LOOP_COMMON_H
#define COLLECTOR_LOOP_COMMON_H

#include "collector/serve/loop.h"

struct loop_signals;

struct loop_handle {
	struct loop *loop;
};

struct loop_backend {
	const char *name;
	void (*free)(struct loop *loop);
	int (*turn)(struct loop *loop, int timeout_ms);
	/* What the turns before left for the next one to begin; NULL: nothing. */
	int (*flush)(struct loop *loop);

	struct loop_handle *(*stream_new)(struct loop *loop, int fd,
					  const struct loop_stream_ops *ops, void *arg);
	int (*stream_send)(struct loop_handle *stream, const void *data, size_t len);
	void (*stream_pause)(struct loop_handle *stream, bool paused);
	void (*stream_finish)(struct loop_handle *stream);
	void (*stream_close)(struct loop_handle *stream);

	struct loop_handle *(*watch_new)(struct loop *loop, int fd, void (*fn)(void *arg),
					 void *arg);
	void (*watch_pause)(struct loop_handle *watch, bool paused);
	void (*watch_free)(struct loop_handle *watch);

	/* All NULL: no file operations. */
	struct loop_handle *(*file_new)(struct loop *loop, void (*fn)(void *arg, int result),
					void *arg);
	void (*file_write)(struct loop_handle *file, int fd, const void *data, size_t len,
			   uint64_t offset);
	void (*file_sync)(struct loop_handle *file, int fd, bool data_only);
	int (*file_wait)(struct loop_handle *file);
	void (*file_free)(struct loop_handle *file);
};

struct loop {
	const struct loop_backend *backend;
	int64_t now_ms;
	bool stop;
	int refused;
	struct loop_timer *timers;
	struct loop_signals *signals;
	void (*round_end)(void *arg);
	void *round_end_arg;
};

/* NULL with errno. */
struct loop *loop_epoll_new(void);
struct loop *loop_uring_new(bool multishot);

void loop_init(struct loop *loop, const struct loop_backend *backend);
void loop_release(struct loop *loop);
int loop_wait_ms(const struct loop *loop, int timeout_ms);
void loop_tick(struct loop *loop);
void loop_end_round(struct loop *loop);

#endif
