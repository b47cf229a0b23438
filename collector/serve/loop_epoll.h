/* SPDX-License-Identifier: BSD-3-Clause */
/* loop_epoll.h - what the files of the epoll loop share; nobody else includes it. */
#ifndef COLLECTOR_LOOP_EPOLL_H
#define COLLECTOR_LOOP_EPOLL_H

#include "collector/serve/loop_common.h"

/* What epoll points to; the first member of everything that waits for a descriptor. */
struct epoll_source {
	struct loop_handle handle;
	void (*ready)(struct epoll_source *source, uint32_t events);
	struct epoll_source *next, *prev;
	int fd;
	uint32_t events; /* what epoll watches now */
	bool dead;	 /* freed at the end of the round: this round's events may point to it */
	bool owns_fd;
};

struct epoll_stream;

struct epoll_loop {
	struct loop loop;
	int epoll_fd;
	struct epoll_source *sources, *dead;
	struct epoll_stream *dirty;
	uint8_t buffer[LOOP_READ_MAX];
};

static inline struct epoll_loop *epoll_loop_of(const struct epoll_source *source)
{
	return (struct epoll_loop *)source->handle.loop;
}

int epoll_source_watch(struct epoll_source *source, uint32_t events);
void *epoll_source_new(struct loop *loop, size_t size, int fd,
		       void (*ready)(struct epoll_source *source, uint32_t events));
void epoll_source_free(struct epoll_source *source);

struct loop_handle *epoll_stream_new(struct loop *loop, int fd, const struct loop_stream_ops *ops,
				     void *arg);
int epoll_stream_send(struct loop_handle *handle, const void *data, size_t len);
void epoll_stream_pause(struct loop_handle *handle, bool paused);
void epoll_stream_finish(struct loop_handle *handle);
void epoll_stream_close(struct loop_handle *handle);
void epoll_stream_ready(struct epoll_source *source, uint32_t events);
void epoll_stream_release(struct epoll_stream *stream);
void epoll_stream_send_all(struct epoll_loop *loop);

#endif
