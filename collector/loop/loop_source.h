/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop_source.h - shared by the files of the event loop, and included only by them.
 *
 * They are one unit and call each other: loop.c: rounds of epoll; loop_stream.c: connections;
 * loop_listen.c: listening sockets; loop_timer.c: timers and signals; loop_file.c: appends and
 * syncs.
 */
#ifndef CREMA_COLLECTOR_LOOP_LOOP_SOURCE_H
#define CREMA_COLLECTOR_LOOP_LOOP_SOURCE_H

#include "collector/loop/loop.h"

/* What epoll points to; the first member of everything that waits for a descriptor. */
struct loop_source {
	struct loop *loop;
	void (*ready)(struct loop_source *source, uint32_t events);
	struct loop_source *next, *prev;
	int fd;
	uint32_t events; /* events that epoll watches now */
	bool dead;	 /* freed at the end of the round, as this round's events may point to it */
	bool owns_fd;
};

struct loop_signals;
struct loop_ring;

struct loop {
	int epoll_fd;
	int64_t now_ms;
	uint64_t rest_until_ns; /* by clock_mono_ns(); 0: the next round begins at once */
	bool stop;
	struct loop_source *sources, *dead;
	struct loop_stream *dirty; /* streams with data to send at the end of the round */
	struct loop_timer *timers;
	struct loop_signals *signals;
	struct loop_ring *ring; /* for all files; NULL before the first */
	void (*round_end)(void *arg);
	void *round_end_arg;
	uint8_t buffer[LOOP_READ_MAX];
};

/* loop.c */
int loop_source_watch(struct loop_source *source, uint32_t events);
void *loop_source_new(struct loop *loop, size_t size, int fd,
		      void (*ready)(struct loop_source *source, uint32_t events));
void loop_source_free(struct loop_source *source);

/* loop_stream.c */
void loop_stream_ready(struct loop_source *source, uint32_t events);
void loop_stream_release(struct loop_stream *stream);
void loop_stream_send_all(struct loop *loop);

/* loop_timer.c: the longest allowed wait of the loop; runs due timers */
int loop_wait_ms(const struct loop *loop, int timeout_ms);
void loop_tick(struct loop *loop);
void loop_run_timers(struct loop *loop);
void loop_release_timers(struct loop *loop);

/* loop_file.c: results that arrived during a wait for one of them; whether there are any */
bool loop_files_answered(const struct loop *loop);
void loop_files_deliver(struct loop *loop);
void loop_files_release(struct loop *loop);

#endif
