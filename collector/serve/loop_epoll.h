/* SPDX-License-Identifier: BSD-3-Clause */
/* loop_epoll.h - what the files of the epoll loop share; nobody else includes it. */
#ifndef COLLECTOR_LOOP_EPOLL_H
#define COLLECTOR_LOOP_EPOLL_H

#include "collector/serve/loop_common.h"

/* What epoll points to; the first member of everything that waits for a descriptor. */
struct loop_source {
	struct loop *loop;
	void (*ready)(struct loop_source *source, uint32_t events);
	struct loop_source *next, *prev;
	int fd;
	uint32_t events; /* what epoll watches now */
	bool dead;	 /* freed at the end of the round: this round's events may point to it */
	bool owns_fd;
};

struct loop {
	struct loop_common common;
	int epoll_fd;
	struct loop_source *sources, *dead;
	struct loop_stream *dirty;
	void (*round_end)(void *arg);
	void *round_end_arg;
	uint8_t buffer[LOOP_READ_MAX];
};

int loop_source_watch(struct loop_source *source, uint32_t events);
void *loop_source_new(struct loop *loop, size_t size, int fd,
		      void (*ready)(struct loop_source *source, uint32_t events));
void loop_source_free(struct loop_source *source);

void loop_stream_ready(struct loop_source *source, uint32_t events);
void loop_stream_release(struct loop_stream *stream);
void loop_stream_send_all(struct loop *loop);

#endif
