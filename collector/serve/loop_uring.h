/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop_uring.h - what the files of the io_uring loop share; nobody else includes it.
 *
 * Whatever has requests in the ring is an item. An item's callbacks only say what it wants and mark
 * it; at the end of the round arm() of each marked item makes the requests, which leave together
 * with the next wait. A request's user_data is its item's address, with the operation in the lower
 * bits. An item that was freed by its owner is dead: it calls nobody any more, and its memory, its
 * buffers and its descriptor go when its last request has come back. So the kernel never writes to
 * or reads from memory that is something else by then.
 */
#ifndef COLLECTOR_LOOP_URING_H
#define COLLECTOR_LOOP_URING_H

#include <liburing.h>

#include "collector/serve/loop_common.h"

/* In the lower bits of user_data: malloc aligns to 16. */
#define URING_OP_MASK 7u
enum uring_op { OP_RECEIVE = 1, OP_SEND, OP_POLL, OP_TURN, OP_FILE };

struct uring_item;

struct uring_kind {
	/* Makes the requests that the item wants; of a dead one, what ends those under way.
	 * False: the submission queue is full, call again. Calls back nobody. */
	bool (*arm)(struct uring_item *item);
	/* One answer; the buffer of a dead item's has to be given back too. */
	void (*complete)(struct uring_item *item, const struct io_uring_cqe *cqe);
	/* No requests any more, and dead: what it owns. */
	void (*destroy)(struct uring_item *item);
};

struct uring_item {
	struct loop_handle handle;
	const struct uring_kind *kind;
	struct uring_item *next, *prev, *next_todo;
	unsigned int requests; /* in the ring */
	bool todo, dead;
};

struct uring_stream;

/* Buffers that the kernel takes from when bytes have come. */
struct uring_buffers {
	struct io_uring_buf_ring *ring;
	uint8_t *memory;
};

struct uring_loop {
	struct loop loop;
	struct io_uring ring;
	struct uring_buffers buffers;
	struct uring_item *items; /* that are not dead */
	struct uring_item *todo, **todo_end;
	unsigned int requests;
	bool multishot;
	struct { /* answers that came while one was waited for */
		struct io_uring_cqe *cqe;
		size_t n, room;
	} later;
	struct uring_stream *starved, **starved_end; /* found no buffer */
	size_t held_bytes;			     /* see loop_uring_stream.c */
};

static inline struct uring_loop *uring_loop_of(const struct uring_item *item)
{
	return (struct uring_loop *)item->handle.loop;
}

/* loop_uring.c */
void *uring_item_new(struct loop *loop, size_t size, const struct uring_kind *kind);
void uring_item_mark(struct uring_item *item);
/* Its owner has done with it. */
void uring_item_free(struct uring_item *item);
/* A request to be filled in, or NULL: the queue is full. */
struct io_uring_sqe *uring_request(struct uring_item *item);
/* Once the request is filled in. */
void uring_request_done(struct uring_item *item, struct io_uring_sqe *sqe, enum uring_op op);
/* Asks for the end of a request of this item. False: the queue is full. */
bool uring_cancel(struct uring_item *item, enum uring_op op);
/* Until the item has no request in the ring; other answers are for later. 0 or -errno. */
int uring_item_wait(struct uring_item *item);

#define URING_BUFFERS 512u

/* loop_uring_buffers.c: 0 or -errno */
int uring_buffers_open(struct uring_buffers *buffers, struct io_uring *ring);
void uring_buffers_close(struct uring_buffers *buffers);
uint8_t *uring_buffer(struct uring_buffers *buffers, const struct io_uring_cqe *cqe);
/* Gives the buffer of an answer, if it has one, back to the kernel. */
void uring_buffer_back(struct uring_buffers *buffers, const struct io_uring_cqe *cqe);

/* loop_uring_stream.c */
struct loop_handle *uring_stream_new(struct loop *loop, int fd, const struct loop_stream_ops *ops,
				     void *arg);
int uring_stream_send(struct loop_handle *handle, const void *data, size_t len);
void uring_stream_pause(struct loop_handle *handle, bool paused);
void uring_stream_finish(struct loop_handle *handle);
void uring_stream_close(struct loop_handle *handle);
/* Before the requests of a round are made, when all buffers are back. */
void uring_stream_feed(struct uring_loop *loop);

/* loop_uring_poll.c */
struct loop_handle *uring_watch_new(struct loop *loop, int fd, void (*fn)(void *arg), void *arg);
void uring_watch_pause(struct loop_handle *handle, bool paused);
void uring_watch_free(struct loop_handle *handle);
struct loop_handle *uring_file_new(struct loop *loop, void (*fn)(void *arg, int result), void *arg);
void uring_file_write(struct loop_handle *handle, int fd, const void *data, size_t len,
		      uint64_t offset);
void uring_file_sync(struct loop_handle *handle, int fd, bool data_only);
int uring_file_wait(struct loop_handle *handle);
void uring_file_free(struct loop_handle *handle);

#endif
