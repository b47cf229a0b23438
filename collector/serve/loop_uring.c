/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop_uring.c - the event loop on io_uring: the ring, its items, the rounds.
 *
 * Needs Linux 5.19 (rings of buffers); 6.0 receives many times for one request. With 6.1 the
 * kernel answers only while this thread waits, so nothing interrupts the callbacks.
 */
#include "collector/serve/loop_uring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REQUESTS 512u
#define ANSWERS 4096u
#define FEATURES (IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_FAST_POLL)
#define NS_PER_MS 1000000

void *uring_item_new(struct loop *base, size_t size, const struct uring_kind *kind)
{
	struct uring_loop *loop = (struct uring_loop *)base;
	struct uring_item *item = calloc(1, size);

	if (!item)
		return NULL;
	item->handle.loop = base;
	item->kind = kind;
	item->next = loop->items;
	if (item->next)
		item->next->prev = item;
	loop->items = item;
	return item;
}

void uring_item_mark(struct uring_item *item)
{
	struct uring_loop *loop = uring_loop_of(item);

	if (item->todo)
		return;
	item->todo = true;
	item->next_todo = NULL;
	*loop->todo_end = item;
	loop->todo_end = &item->next_todo;
}

void uring_item_free(struct uring_item *item)
{
	if (item->dead)
		return;
	item->dead = true;
	if (item->next)
		item->next->prev = item->prev;
	if (item->prev)
		item->prev->next = item->next;
	else
		uring_loop_of(item)->items = item->next;
	uring_item_mark(item);
}

/* Requests and answers */

static struct io_uring_sqe *get_sqe(struct uring_loop *loop)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&loop->ring);

	if (sqe)
		return sqe;
	io_uring_submit(&loop->ring);
	return io_uring_get_sqe(&loop->ring);
}

struct io_uring_sqe *uring_request(struct uring_item *item)
{
	return get_sqe(uring_loop_of(item));
}

void uring_request_done(struct uring_item *item, struct io_uring_sqe *sqe, enum uring_op op)
{
	io_uring_sqe_set_data64(sqe, (uintptr_t)item | op);
	item->requests++;
	uring_loop_of(item)->requests++;
}

bool uring_cancel(struct uring_item *item, enum uring_op op)
{
	struct io_uring_sqe *sqe = get_sqe(uring_loop_of(item));

	if (!sqe)
		return false;
	io_uring_prep_cancel64(sqe, (uintptr_t)item | op, 0);
	io_uring_sqe_set_data64(sqe, 0); /* its own answer is of no interest */
	return true;
}

static void answer(struct uring_loop *loop, const struct io_uring_cqe *cqe)
{
	struct uring_item *item =
		(struct uring_item *)(uintptr_t)(cqe->user_data & ~(__u64)URING_OP_MASK);

	if (!item)
		return;
	if (!(cqe->flags & IORING_CQE_F_MORE)) {
		item->requests--;
		loop->requests--;
	}
	item->kind->complete(item, cqe);
	if (item->dead && !item->requests)
		uring_item_mark(item);
}

/* Those that are there now: what the callbacks bring about is for the next round. */
static void answers(struct uring_loop *loop)
{
	unsigned int left = io_uring_cq_ready(&loop->ring);
	struct io_uring_cqe *cqe, *later = loop->later.cqe, copy;
	size_t i, n = loop->later.n;

	loop->later.cqe = NULL;
	loop->later.n = loop->later.room = 0;
	for (i = 0; i < n; i++)
		answer(loop, &later[i]);
	free(later);

	/* What a callback has put off comes before what is in the ring by then. */
	while (left-- && !loop->later.n && !io_uring_peek_cqe(&loop->ring, &cqe)) {
		copy = *cqe;
		io_uring_cqe_seen(&loop->ring, cqe);
		answer(loop, &copy);
	}
}

/* Makes the requests of all marked items. False: some are left, the queue is full. */
static bool arm(struct uring_loop *loop)
{
	struct uring_item *item;

	while ((item = loop->todo)) {
		if ((!item->dead || item->requests) && !item->kind->arm(item))
			return false;
		loop->todo = item->next_todo;
		if (!loop->todo)
			loop->todo_end = &loop->todo;
		item->todo = false;
		if (item->dead && !item->requests) {
			item->kind->destroy(item);
			free(item);
		}
	}
	return true;
}

/* What is no failure of the ring; EAGAIN and EBUSY: it has to be relieved of answers first. */
static int passing(int err)
{
	return err >= 0 || err == -ETIME || err == -EINTR || err == -EAGAIN || err == -EBUSY ? 0
											     : err;
}

static int flush(struct loop *base)
{
	struct uring_loop *loop = (struct uring_loop *)base;

	arm(loop);
	return io_uring_sq_ready(&loop->ring) ? passing(io_uring_submit(&loop->ring)) : 0;
}

static int keep_for_later(struct uring_loop *loop, const struct io_uring_cqe *cqe)
{
	size_t room = loop->later.room ? loop->later.room * 2 : 64;
	struct io_uring_cqe *more;

	if (loop->later.n == loop->later.room) {
		more = realloc(loop->later.cqe, room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		loop->later.cqe = more;
		loop->later.room = room;
	}
	loop->later.cqe[loop->later.n++] = *cqe;
	return 0;
}

int uring_item_wait(struct uring_item *item)
{
	struct uring_loop *loop = uring_loop_of(item);
	struct io_uring_cqe *cqe;
	int err = item->kind->arm(item) ? 0 : -EBUSY;

	while (!err && item->requests) {
		err = passing(io_uring_submit_and_wait(&loop->ring, 1));
		while (!err && !io_uring_peek_cqe(&loop->ring, &cqe)) {
			if ((cqe->user_data & ~(__u64)URING_OP_MASK) == (uintptr_t)item)
				answer(loop, cqe);
			else
				err = keep_for_later(loop, cqe);
			if (!err)
				io_uring_cqe_seen(&loop->ring, cqe);
		}
	}
	return err;
}

static int turn(struct loop *base, int timeout_ms)
{
	struct uring_loop *loop = (struct uring_loop *)base;
	struct __kernel_timespec ts;
	struct io_uring_cqe *cqe;
	int wait_ms = loop_wait_ms(base, timeout_ms), err;

	uring_stream_feed(loop);
	if (!arm(loop) || loop->starved || loop->later.n)
		wait_ms = 0;
	ts.tv_sec = wait_ms / 1000;
	ts.tv_nsec = (long long)(wait_ms % 1000) * NS_PER_MS;
	err = io_uring_submit_and_wait_timeout(&loop->ring, &cqe, 1, wait_ms < 0 ? NULL : &ts,
					       NULL);
	if (passing(err))
		return err;
	loop_tick(base);
	answers(loop);
	loop_end_round(base);
	return 0;
}

/* The ring */

static bool has_operations(struct io_uring *ring)
{
	static const int needed[] = {IORING_OP_NOP,	    IORING_OP_RECV,  IORING_OP_SEND,
				     IORING_OP_WRITE,	    IORING_OP_FSYNC, IORING_OP_POLL_ADD,
				     IORING_OP_ASYNC_CANCEL};
	struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
	bool all = probe != NULL;
	size_t i;

	for (i = 0; all && i < sizeof(needed) / sizeof(needed[0]); i++)
		all = io_uring_opcode_supported(probe, needed[i]);
	io_uring_free_probe(probe);
	return all;
}

/* A filter may let a ring be made and refuse its use. */
static int try_out(struct io_uring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	struct io_uring_cqe *cqe;
	int err;

	io_uring_prep_nop(sqe);
	err = io_uring_submit_and_wait(ring, 1);
	if (err < 0)
		return err;
	err = io_uring_peek_cqe(ring, &cqe);
	if (!err)
		io_uring_cqe_seen(ring, cqe);
	return err;
}

static int open_ring(struct io_uring *ring)
{
	static const unsigned int flags[] = {
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, /* 6.1 */
		IORING_SETUP_COOP_TASKRUN,				 /* 5.19 */
	};
	struct io_uring_params params;
	int err = -EINVAL;
	size_t i;

	for (i = 0; err == -EINVAL && i < sizeof(flags) / sizeof(flags[0]); i++) {
		memset(&params, 0, sizeof(params));
		params.flags = flags[i] | IORING_SETUP_CQSIZE;
		params.cq_entries = ANSWERS;
		err = io_uring_queue_init_params(REQUESTS, ring, &params);
	}
	if (err)
		return err;
	if ((params.features & FEATURES) != FEATURES || !has_operations(ring))
		err = -EOPNOTSUPP;
	else
		err = io_uring_ring_dontfork(ring);
	if (!err)
		err = try_out(ring);
	if (err)
		io_uring_queue_exit(ring);
	return err;
}

/* Nobody is called back; returns when the kernel has given back everything. */
static void uring_free(struct loop *base)
{
	struct uring_loop *loop = (struct uring_loop *)base;
	int err = 0;

	loop_release(base);
	while (loop->items)
		uring_item_free(loop->items);
	while (!err) {
		arm(loop);
		if (!loop->requests && !loop->todo)
			break;
		err = passing(io_uring_submit_and_wait(&loop->ring, loop->later.n ? 0 : 1));
		answers(loop);
	}
	io_uring_queue_exit(&loop->ring);
	if (!err) /* else the kernel may still write to them */
		uring_buffers_close(&loop->buffers);
	free(loop);
}

static const struct loop_backend backend = {
	.name = "io_uring",
	.free = uring_free,
	.turn = turn,
	.flush = flush,
	.stream_new = uring_stream_new,
	.stream_send = uring_stream_send,
	.stream_pause = uring_stream_pause,
	.stream_finish = uring_stream_finish,
	.stream_close = uring_stream_close,
	.watch_new = uring_watch_new,
	.watch_pause = uring_watch_pause,
	.watch_free = uring_watch_free,
	.file_new = uring_file_new,
	.file_write = uring_file_write,
	.file_sync = uring_file_sync,
	.file_wait = uring_file_wait,
	.file_free = uring_file_free,
};

struct loop *loop_uring_new(bool multishot)
{
	struct uring_loop *loop = calloc(1, sizeof(*loop));
	int err = -ENOMEM;

	if (!loop)
		goto out;
	loop->todo_end = &loop->todo;
	loop->starved_end = &loop->starved;
	loop->multishot = multishot;
	err = open_ring(&loop->ring);
	if (err)
		goto out;
	err = uring_buffers_open(&loop->buffers, &loop->ring);
	if (err) {
		io_uring_queue_exit(&loop->ring);
		goto out;
	}
	loop_init(&loop->loop, &backend);
	return &loop->loop;
out:
	free(loop);
	errno = -err;
	return NULL;
}
