/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop.h - the collector's event loop: one thread, bounded work per round.
 *
 * The interface is one of completions: a stream hands over bytes that have been received (from a
 * buffer of the loop, valid during the call only), a listener hands over connections that have been
 * accepted, and what is sent is queued and leaves at the end of the round. Nobody outside the loop
 * calls recv, send or accept.
 *
 * One round: wait; callbacks (at most LOOP_ROUND_MAX bytes of all streams, in pieces of at most
 * LOOP_READ_MAX; for each listener at most LOOP_ACCEPT_MAX connections); due timers; round-end
 * callbacks; all queued output is sent. So what a round-end callback
 * sends goes out in the same round, in one batch.
 *
 * Ownership: a stream or listener owns its descriptor and closes it; a watch does not. Objects may
 * be freed or closed in any callback, their own included: no callback of theirs comes afterwards.
 * Constructors return NULL with errno set; they never close the descriptor when they fail.
 * Nothing here is safe to call from another thread.
 */
#ifndef CREMA_COLLECTOR_LOOP_LOOP_H
#define CREMA_COLLECTOR_LOOP_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOOP_READ_MAX (64u << 10)
#define LOOP_ROUND_MAX (8u << 20)
#define LOOP_ACCEPT_MAX 16u
#define LOOP_SEND_QUEUE (64u << 10) /* unsent bytes that a stream holds at most */

struct loop;
struct loop_stream;
struct loop_listener;
struct loop_watch;
struct loop_timer;
struct loop_file;

struct loop *loop_new(void);
/* And all its streams, watches and timers, without callbacks. Listeners and files: free them
 * before. */
void loop_free(struct loop *loop);

/* Rounds until loop_stop(); 0 or -errno. */
int loop_run(struct loop *loop);
/* One round that waits at most timeout_ms (-1: until something happens). 0 or -errno. */
int loop_turn(struct loop *loop, int timeout_ms);
void loop_stop(struct loop *loop);
/* CLOCK_MONOTONIC in ms, as of the beginning of this round. */
int64_t loop_now_ms(const struct loop *loop);

/* The next round begins after `ns` (below a second), with all events until then: fewer rounds. */
void loop_rest(struct loop *loop, uint64_t ns);

/* Called at the end of each round, before the output is sent. One per loop; NULL removes it. */
void loop_set_round_end(struct loop *loop, void (*fn)(void *arg), void *arg);

struct loop_stream_ops {
	void (*bytes)(void *arg, const uint8_t *data, size_t len);
	/* The queue went from not empty to empty; may be NULL. */
	void (*writable)(void *arg);
	/* The peer ended (error 0) or the connection broke (-errno); the stream is gone. */
	void (*closed)(void *arg, int error);
};

/* fd: a connected socket, which is made blocking or not as the loop needs it. */
struct loop_stream *loop_stream_new(struct loop *loop, int fd, const struct loop_stream_ops *ops,
				    void *arg);
/* Queues a copy. 0, or -ENOBUFS when the peer has let LOOP_SEND_QUEUE bytes pile up. */
int loop_stream_send(struct loop_stream *stream, const void *data, size_t len);
/*
 * While paused no bytes come; the kernel's buffers push back on the peer. A peer that ends in the
 * meantime is closed() with -ECONNRESET, and what it had sent is lost.
 */
void loop_stream_pause(struct loop_stream *stream, bool paused);
/* Ends our direction when the queue has been sent; bytes() and closed() still come. */
void loop_stream_finish(struct loop_stream *stream);
/* Closes at once, without closed(); what is queued gets one try. */
void loop_stream_close(struct loop_stream *stream);

/* fn owns the descriptor that it gets. Out of descriptors: accepting rests for a second. */
struct loop_listener *loop_listener_new(struct loop *loop, int fd, void (*fn)(void *arg, int fd),
					void *arg);
void loop_listener_close(struct loop_listener *listener);

/* A foreign descriptor (of a library with a loop of its own) that became readable. */
struct loop_watch *loop_watch_new(struct loop *loop, int fd, void (*fn)(void *arg), void *arg);
void loop_watch_pause(struct loop_watch *watch, bool paused);
void loop_watch_free(struct loop_watch *watch);

/*
 * One operation on a file at a time, done while the loop goes on, by io_uring: where the kernel
 * refuses it, or crema was built without, loop_file_new() is NULL with errno. fn gets the bytes
 * that were written (which may be fewer), 0 of a sync, or -errno. data stays the loop's until then.
 */
struct loop_file *loop_file_new(struct loop *loop, void (*fn)(void *arg, int result), void *arg);
void loop_file_write(struct loop_file *file, int fd, const void *data, size_t len, uint64_t offset);
void loop_file_sync(struct loop_file *file, int fd, bool data_only);
/* Waits until fn has been called; nobody else is. 0 or -errno. */
int loop_file_wait(struct loop_file *file);
/* Not while an operation is under way, but in fn. */
void loop_file_free(struct loop_file *file);

/* One-shot; set again in fn to repeat. A new timer is off. ms < 0: off. */
struct loop_timer *loop_timer_new(struct loop *loop, void (*fn)(void *arg), void *arg);
void loop_timer_set(struct loop_timer *timer, int64_t ms);
void loop_timer_free(struct loop_timer *timer);

/*
 * Blocks the signal in the calling thread (and threads made later) and hands it to fn; the mask is
 * put back by loop_free(). 0 or -errno.
 */
int loop_signal(struct loop *loop, int signo, void (*fn)(void *arg, int signo), void *arg);

#endif
