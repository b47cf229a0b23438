/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop_uring_stream.c - streams of the io_uring loop: receiving, the send queue, ending.
 *
 * One request receives until it is cancelled or the buffers run out. Streams that find none are fed
 * in turn, so many in each round as surely find one: if all tried, most would in vain. Bytes that
 * it had received when the stream was paused are held in memory of the stream's own, since a buffer
 * kept would be missing for the others; they are delivered, in order, in the first round after the
 * pause. In one round no more than all buffers can come, and once HELD_MAX bytes are held, requests
 * receive one buffer only.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collector/serve/loop_uring.h"
#include "common/buf.h"

#define HELD_MAX (8u << 20)

struct uring_stream {
	struct uring_item item;
	const struct loop_stream_ops *ops;
	void *arg;
	struct uring_stream *next_starved;
	int fd, end_error;
	struct buf held;
	struct buf queue, sending;
	size_t sent; /* of sending */
	bool paused, ended, finishing, shut, starved;
	bool receiving, cancelling, send_pending, polling, turning; /* requests in the ring */
};

static void starve(struct uring_stream *stream)
{
	struct uring_loop *loop = uring_loop_of(&stream->item);

	stream->starved = true;
	stream->next_starved = NULL;
	*loop->starved_end = stream;
	loop->starved_end = &stream->next_starved;
}

static void forget_starved(struct uring_stream *stream)
{
	struct uring_loop *loop = uring_loop_of(&stream->item);
	struct uring_stream **p = &loop->starved;

	if (!stream->starved)
		return;
	while (*p != stream)
		p = &(*p)->next_starved;
	*p = stream->next_starved;
	if (!*p)
		loop->starved_end = p;
	stream->starved = false;
}

void uring_stream_feed(struct uring_loop *loop)
{
	struct uring_stream *stream;
	unsigned int left = URING_BUFFERS / 2;

	while (left-- && (stream = loop->starved)) {
		forget_starved(stream);
		uring_item_mark(&stream->item);
	}
}

static void stream_free(struct uring_stream *stream)
{
	forget_starved(stream);
	uring_loop_of(&stream->item)->held_bytes -= stream->held.len;
	buf_release(&stream->held);
	uring_item_free(&stream->item);
}

static void stream_break(struct uring_stream *stream, int error)
{
	const struct loop_stream_ops *ops = stream->ops;
	void *arg = stream->arg;

	buf_release(&stream->queue);
	shutdown(stream->fd, SHUT_RDWR);
	stream_free(stream);
	ops->closed(arg, error);
}

/* Requests */

static bool arm_receive(struct uring_stream *stream)
{
	struct uring_loop *loop = uring_loop_of(&stream->item);
	struct io_uring_sqe *sqe;

	if (stream->paused || stream->ended) {
		if (!stream->receiving || stream->cancelling)
			return true;
		stream->cancelling = uring_cancel(&stream->item, OP_RECEIVE);
		return stream->cancelling;
	}
	/* Never two: the second could overtake the first. */
	if (stream->receiving || stream->starved)
		return true;
	sqe = uring_request(&stream->item);
	if (!sqe)
		return false;
	if (loop->multishot && loop->held_bytes < HELD_MAX)
		io_uring_prep_recv_multishot(sqe, stream->fd, NULL, 0, 0);
	else
		io_uring_prep_recv(sqe, stream->fd, NULL, 0, 0);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = 0;
	uring_request_done(&stream->item, sqe, OP_RECEIVE);
	stream->receiving = true;
	return true;
}

/* While paused: else peers that give up and come again would pile up. */
static bool arm_poll(struct uring_stream *stream)
{
	struct io_uring_sqe *sqe;

	if (!stream->paused || stream->polling)
		return true;
	sqe = uring_request(&stream->item);
	if (!sqe)
		return false;
	io_uring_prep_poll_add(sqe, stream->fd, POLLRDHUP | POLLHUP | POLLERR);
	uring_request_done(&stream->item, sqe, OP_POLL);
	stream->polling = true;
	return true;
}

/* A request that comes back at once, in the next round. */
static bool arm_turn(struct uring_stream *stream)
{
	struct io_uring_sqe *sqe;

	if (stream->paused || stream->turning || !stream->held.len)
		return true;
	sqe = uring_request(&stream->item);
	if (!sqe)
		return false;
	io_uring_prep_nop(sqe);
	uring_request_done(&stream->item, sqe, OP_TURN);
	stream->turning = true;
	return true;
}

static bool arm_send(struct uring_stream *stream)
{
	struct io_uring_sqe *sqe;
	struct buf empty;

	if (stream->send_pending)
		return true;
	if (!stream->sending.len) {
		empty = stream->sending;
		stream->sending = stream->queue;
		stream->queue = empty;
		stream->sent = 0;
	}
	if (!stream->sending.len) {
		if (stream->finishing && !stream->shut)
			shutdown(stream->fd, SHUT_WR);
		stream->shut = stream->finishing;
		return true;
	}
	sqe = uring_request(&stream->item);
	if (!sqe)
		return false;
	io_uring_prep_send(sqe, stream->fd, stream->sending.data + stream->sent,
			   stream->sending.len - stream->sent, MSG_NOSIGNAL);
	uring_request_done(&stream->item, sqe, OP_SEND);
	stream->send_pending = true;
	return true;
}

static bool end_request(struct uring_stream *stream, bool under_way, enum uring_op op)
{
	return !under_way || uring_cancel(&stream->item, op);
}

static bool stream_arm(struct uring_item *item)
{
	struct uring_stream *stream = (struct uring_stream *)item;

	if (item->dead)
		return end_request(stream, stream->send_pending, OP_SEND) &&
		       end_request(stream, stream->receiving, OP_RECEIVE) &&
		       end_request(stream, stream->polling, OP_POLL);
	return arm_send(stream) && arm_receive(stream) && arm_poll(stream) && arm_turn(stream);
}

/* Answers */

static void ended(struct uring_stream *stream, int error)
{
	if (stream->paused) {
		stream_break(stream, -ECONNRESET);
	} else if (stream->held.len) {
		stream->ended = true;
		stream->end_error = error;
	} else {
		stream_break(stream, error);
	}
}

static void received(struct uring_stream *stream, const uint8_t *data, size_t len)
{
	if (!stream->paused && !stream->held.len) {
		stream->ops->bytes(stream->arg, data, len);
	} else if (buf_add(&stream->held, data, len)) {
		stream_break(stream, -ENOMEM);
	} else {
		uring_loop_of(&stream->item)->held_bytes += len;
		uring_item_mark(&stream->item);
	}
}

static void on_receive(struct uring_stream *stream, const struct io_uring_cqe *cqe)
{
	struct uring_loop *loop = uring_loop_of(&stream->item);

	if (!(cqe->flags & IORING_CQE_F_MORE)) {
		stream->receiving = false;
		stream->cancelling = false;
		uring_item_mark(&stream->item);
	}
	if (stream->item.dead)
		return;
	if (cqe->res > 0)
		received(stream, uring_buffer(&loop->buffers, cqe), (size_t)cqe->res);
	else if (cqe->res == 0)
		ended(stream, 0);
	else if (cqe->res == -EINVAL && loop->multishot)
		loop->multishot = false; /* a kernel before 6.0 */
	else if (cqe->res == -ENOBUFS)
		starve(stream);
	else if (cqe->res != -ECANCELED && cqe->res != -EINTR && cqe->res != -EAGAIN)
		ended(stream, cqe->res);
}

/* The pause is over: what was held, until the next pause. */
static void deliver(struct uring_stream *stream)
{
	struct uring_loop *loop = uring_loop_of(&stream->item);
	struct buf held = stream->held;
	size_t at = 0, n;

	loop->held_bytes -= held.len;
	stream->held = (struct buf)BUF_INIT;
	while (at < held.len && !stream->item.dead && !stream->paused) {
		n = held.len - at < LOOP_READ_MAX ? held.len - at : LOOP_READ_MAX;
		stream->ops->bytes(stream->arg, held.data + at, n);
		at += n;
	}
	if (!stream->item.dead && at < held.len) {
		buf_consume(&held, at);
		stream->held = held;
		loop->held_bytes += held.len;
		return;
	}
	buf_release(&held);
	if (!stream->item.dead && stream->ended)
		ended(stream, stream->end_error);
}

/* What is queued gets one try. */
static void send_last(struct uring_stream *stream)
{
	if (stream->queue.len)
		send(stream->fd, stream->queue.data, stream->queue.len,
		     MSG_NOSIGNAL | MSG_DONTWAIT);
	shutdown(stream->fd, SHUT_RDWR);
}

static void on_sent(struct uring_stream *stream, int result)
{
	if (result > 0)
		stream->sent += (size_t)result;
	if (stream->item.dead) {
		if (stream->sent == stream->sending.len)
			send_last(stream);
	} else if (result <= 0 && result != -EINTR && result != -EAGAIN) {
		stream_break(stream, result ? result : -EPIPE);
	} else if (stream->sent < stream->sending.len) {
		uring_item_mark(&stream->item);
	} else {
		buf_release(&stream->sending);
		uring_item_mark(&stream->item);
		if (!stream->queue.len && stream->ops->writable)
			stream->ops->writable(stream->arg);
	}
}

static void stream_complete(struct uring_item *item, const struct io_uring_cqe *cqe)
{
	struct uring_stream *stream = (struct uring_stream *)item;

	switch ((enum uring_op)(cqe->user_data & URING_OP_MASK)) {
	case OP_RECEIVE:
		on_receive(stream, cqe);
		uring_buffer_back(&uring_loop_of(item)->buffers, cqe);
		break;
	case OP_SEND:
		stream->send_pending = false;
		on_sent(stream, cqe->res);
		break;
	case OP_POLL:
		stream->polling = false;
		if (!item->dead && stream->paused)
			stream_break(stream, -ECONNRESET);
		break;
	case OP_TURN:
		stream->turning = false;
		uring_item_mark(item);
		if (!item->dead && !stream->paused)
			deliver(stream);
		break;
	case OP_FILE:
		break;
	}
}

static void stream_destroy(struct uring_item *item)
{
	struct uring_stream *stream = (struct uring_stream *)item;

	buf_release(&stream->held);
	buf_release(&stream->queue);
	buf_release(&stream->sending);
	close(stream->fd);
}

/* The interface */

struct loop_handle *uring_stream_new(struct loop *loop, int fd, const struct loop_stream_ops *ops,
				     void *arg)
{
	static const struct uring_kind kind = {stream_arm, stream_complete, stream_destroy};
	struct uring_stream *stream;

	/* Else the ring answers EAGAIN instead of waiting. */
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK))
		return NULL;
	stream = uring_item_new(loop, sizeof(*stream), &kind);
	if (!stream)
		return NULL;
	stream->fd = fd;
	stream->ops = ops;
	stream->arg = arg;
	uring_item_mark(&stream->item);
	return &stream->item.handle;
}

int uring_stream_send(struct loop_handle *handle, const void *data, size_t len)
{
	struct uring_stream *stream = (struct uring_stream *)handle;

	if (len > LOOP_SEND_QUEUE - stream->queue.len - (stream->sending.len - stream->sent))
		return -ENOBUFS;
	if (buf_add(&stream->queue, data, len)) {
		stream->queue.error = 0; /* what was queued before is whole */
		return -ENOMEM;
	}
	uring_item_mark(&stream->item);
	return 0;
}

void uring_stream_pause(struct loop_handle *handle, bool paused)
{
	struct uring_stream *stream = (struct uring_stream *)handle;

	stream->paused = paused;
	uring_item_mark(&stream->item);
}

void uring_stream_finish(struct loop_handle *handle)
{
	struct uring_stream *stream = (struct uring_stream *)handle;

	stream->finishing = true;
	uring_item_mark(&stream->item);
}

void uring_stream_close(struct loop_handle *handle)
{
	struct uring_stream *stream = (struct uring_stream *)handle;

	/* What the kernel is sending, if it has not done so, stays first: on_sent() goes on. */
	if (!stream->send_pending)
		send_last(stream);
	stream_free(stream);
}
