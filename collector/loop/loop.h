/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop.h - the collector's event loop: one thread, bounded work per round.
 *
 * The interface is based on completions: a stream delivers received bytes (in a buffer of the loop,
 * valid only during the call), a listener delivers accepted connections, and sent data is queued
 * until the end of the round. Only the loop calls recv, send or accept.
 *
 * One round: wait; callbacks (at most LOOP_ROUND_MAX bytes of all streams, in pieces of at most
 * LOOP_READ_MAX; for each listener at most LOOP_ACCEPT_MAX connections); due timers; round-end
 * callbacks; all queued output is sent. So the output of a round-end callback is sent in the same
 * round, in one batch.
 *
 * Ownership: a stream or listener owns its descriptor and closes it; a watch does not. Objects may
 * be freed or closed in any callback, including their own; they get no callbacks afterwards.
 * Constructors return NULL with errno set; they never close the descriptor on failure. Nothing here
 * is safe to call from another thread.
 */
#ifndef CREMA_COLLECTOR_LOOP_LOOP_H
#define CREMA_COLLECTOR_LOOP_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOOP_READ_MAX (64u << 10)
#define LOOP_ROUND_MAX (8u << 20)
#define LOOP_ACCEPT_MAX 16u
#define LOOP_SEND_QUEUE (64u << 10) /* maximum of unsent bytes per stream */

struct loop;
struct loop_stream;
struct loop_listener;
struct loop_watch;
struct loop_timer;
struct loop_file;

struct loop *loop_new(void);
/* Also frees its streams, watches and timers, without callbacks. Free listeners and files
 * before. */
void loop_free(struct loop *loop);

/* Runs rounds until loop_stop(); 0 or -errno. */
int loop_run(struct loop *loop);
/* Runs one round that waits at most timeout_ms (-1: until an event). 0 or -errno. */
int loop_turn(struct loop *loop, int timeout_ms);
void loop_stop(struct loop *loop);
/* CLOCK_MONOTONIC in ms, as of the beginning of this round. */
int64_t loop_now_ms(const struct loop *loop);

/* Delays the next round by `ns` (below a second), to collect events: fewer rounds. */
void loop_rest(struct loop *loop, uint64_t ns);

/* Called at the end of each round, before the output is sent. One per loop; NULL removes it. */
void loop_set_round_end(struct loop *loop, void (*fn)(void *arg), void *arg);

struct loop_stream_ops {
	void (*bytes)(void *arg, const uint8_t *data, size_t len);
	/* The send queue has become empty; may be NULL. */
	void (*writable)(void *arg);
	/* The peer closed (error 0) or the connection broke (-errno); the stream is gone. */
	void (*closed)(void *arg, int error);
};

/* fd: a connected socket; the loop sets its blocking mode. */
struct loop_stream *loop_stream_new(struct loop *loop, int fd, const struct loop_stream_ops *ops,
				    void *arg);
/* Queues a copy. 0, or -ENOBUFS if LOOP_SEND_QUEUE bytes are unsent. */
int loop_stream_send(struct loop_stream *stream, const void *data, size_t len);
/*
 * While paused no bytes are received; the kernel's buffers slow the peer down. If a peer closes
 * meanwhile, closed() reports -ECONNRESET, and unread data is lost.
 */
void loop_stream_pause(struct loop_stream *stream, bool paused);
/* Shuts down our direction once the queue is sent; bytes() and closed() still come. */
void loop_stream_finish(struct loop_stream *stream);
/* Closes at once, without closed(); queued data gets one try. */
void loop_stream_close(struct loop_stream *stream);

/* fn owns the descriptor that it gets. When out of descriptors, accepting pauses for a second. */
struct loop_listener *loop_listener_new(struct loop *loop, int fd, void (*fn)(void *arg, int fd),
					void *arg);
void loop_listener_close(struct loop_listener *listener);

/* Watches a foreign descriptor (of a library with a separate loop) for readability. */
struct loop_watch *loop_watch_new(struct loop *loop, int fd, void (*fn)(void *arg), void *arg);
void loop_watch_pause(struct loop_watch *watch, bool paused);
void loop_watch_free(struct loop_watch *watch);

/*
 * One file operation at a time, done by io_uring while the loop continues. If the kernel refuses
 * it, or crema was built without it, loop_file_new() returns NULL with errno. fn gets the number of
 * bytes written (possibly fewer), 0 for a sync, or -errno. The loop uses data until then.
 */
struct loop_file *loop_file_new(struct loop *loop, void (*fn)(void *arg, int result), void *arg);
void loop_file_write(struct loop_file *file, int fd, const void *data, size_t len, uint64_t offset);
void loop_file_sync(struct loop_file *file, int fd, bool data_only);
/* Waits until fn has been called; no other callbacks run. 0 or -errno. */
int loop_file_wait(struct loop_file *file);
/* Not during an operation, but allowed in fn. */
void loop_file_free(struct loop_file *file);

/* One-shot; set it again in fn to repeat. A new timer is off. ms < 0: off. */
struct loop_timer *loop_timer_new(struct loop *loop, void (*fn)(void *arg), void *arg);
void loop_timer_set(struct loop_timer *timer, int64_t ms);
void loop_timer_free(struct loop_timer *timer);

/*
 * Blocks the signal in the calling thread (and threads created later) and passes it to fn;
 * loop_free() restores the mask. 0 or -errno.
 */
int loop_signal(struct loop *loop, int signo, void (*fn)(void *arg, int signo), void *arg);

#endif
