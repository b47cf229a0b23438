/* SPDX-License-Identifier: BSD-3-Clause */
/* test_loop.c - the guarantees of loop.h, on real sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collector/loop/loop.h"
#include "common/clock.h"
#include "common/net.h"

struct peer {
	struct loop *loop;
	struct loop_stream *stream, *victim;
	size_t bytes, calls, largest, writables, closes;
	int error;
	bool close_self, pause_self, disorder;
	struct loop_file *file; /* each piece is written to it and waited for */
	int file_fd, written;
	size_t at; /* position in the sequence that was sent */
	char last[64];
};

/* Each byte depends on its position. */
static uint8_t sequence(size_t at)
{
	return (uint8_t)(at ^ at >> 8 ^ at >> 16);
}

static void on_bytes(void *arg, const uint8_t *data, size_t len)
{
	struct peer *peer = arg;

	peer->bytes += len;
	peer->calls++;
	for (size_t i = 0; i < len; i++)
		peer->disorder |= data[i] != sequence(peer->at++);
	if (peer->file) {
		peer->written = -1;
		loop_file_write(peer->file, peer->file_fd, data, len, peer->bytes - len);
		assert_int_equal(loop_file_wait(peer->file), 0);
		peer->disorder |= peer->written != (int)len;
	}
	if (peer->pause_self)
		loop_stream_pause(peer->stream, true);
	peer->largest = len > peer->largest ? len : peer->largest;
	memcpy(peer->last, data, len < sizeof(peer->last) ? len : sizeof(peer->last));
	if (peer->victim)
		loop_stream_close(peer->victim);
	peer->victim = NULL;
	if (peer->close_self)
		loop_stream_close(peer->stream);
}

static void on_writable(void *arg)
{
	((struct peer *)arg)->writables++;
}

static void on_closed(void *arg, int error)
{
	((struct peer *)arg)->closes++;
	((struct peer *)arg)->error = error;
}

static const struct loop_stream_ops ops = {on_bytes, on_writable, on_closed};

static int connect_peer(struct loop *loop, struct peer *peer)
{
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	memset(peer, 0, sizeof(*peer));
	peer->loop = loop;
	peer->stream = loop_stream_new(loop, fd[0], &ops, peer);
	assert_non_null(peer->stream);
	return fd[1];
}

static void turn(struct loop *loop)
{
	assert_int_equal(loop_turn(loop, 200), 0);
}

static void bytes_arrive_in_bounded_pieces(void **state)
{
	static char big[3 * LOOP_READ_MAX];
	struct loop *loop = loop_new();
	struct peer peer;
	int fd = connect_peer(loop, &peer);
	ssize_t sent;

	(void)state;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	sent = write(fd, big, sizeof(big));
	assert_true(sent > (ssize_t)LOOP_READ_MAX);
	turn(loop);
	assert_in_range(peer.bytes, 1, LOOP_ROUND_MAX);
	assert_true(peer.largest <= LOOP_READ_MAX);
	while (peer.bytes < (size_t)sent)
		turn(loop);
	close(fd);
	turn(loop);
	assert_int_equal(peer.closes, 1);
	assert_int_equal(peer.error, 0);
	loop_free(loop);
}

static void round_end_send(void *arg)
{
	struct peer *peer = arg;

	if (peer->bytes)
		loop_stream_send(peer->stream, "ack", 3);
}

static void what_the_round_end_sends_leaves_in_that_round(void **state)
{
	struct loop *loop = loop_new();
	struct peer peer;
	int fd = connect_peer(loop, &peer);
	char got[8];

	(void)state;
	loop_set_round_end(loop, round_end_send, &peer);
	assert_int_equal(write(fd, "x", 1), 1);
	turn(loop);
	assert_int_equal(recv(fd, got, sizeof(got), MSG_DONTWAIT), 3);
	close(fd);
	loop_free(loop);
}

static void a_slow_reader_fills_its_queue_only(void **state)
{
	static char block[4096];
	struct loop *loop = loop_new();
	struct peer peer;
	int fd = connect_peer(loop, &peer), err = 0, i;
	size_t queued = 0, got = 0;
	ssize_t n;

	(void)state;
	for (i = 0; i < 1000 && !err; i++) {
		err = loop_stream_send(peer.stream, block, sizeof(block));
		queued += err ? 0 : sizeof(block);
		assert_int_equal(loop_turn(loop, 0), 0);
	}
	assert_int_equal(err, -ENOBUFS);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	peer.writables = 0;
	for (i = 0; i < 2000 && got < queued; i++) {
		n = read(fd, block, sizeof(block));
		got += n > 0 ? (size_t)n : 0;
		assert_int_equal(loop_turn(loop, 0), 0);
	}
	assert_int_equal(got, queued);
	assert_int_equal(peer.writables, 1);
	assert_int_equal(loop_stream_send(peer.stream, block, 1), 0);
	close(fd);
	loop_free(loop);
}

static void a_paused_stream_gets_nothing(void **state)
{
	struct loop *loop = loop_new();
	struct peer peer;
	int fd = connect_peer(loop, &peer);
	uint64_t start;

	(void)state;
	loop_stream_pause(peer.stream, true);
	assert_int_equal(write(fd, "abc", 3), 3);
	start = clock_mono_ns();
	assert_int_equal(loop_turn(loop, 20), 0);
	assert_true(clock_mono_ns() - start > 10000000); /* it slept, and did not spin */
	assert_int_equal(peer.bytes, 0);
	loop_stream_pause(peer.stream, false);
	turn(loop);
	assert_int_equal(peer.bytes, 3);
	loop_stream_pause(peer.stream, true);
	assert_int_equal(write(fd, "abc", 3), 3);
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	turn(loop);
	assert_int_equal(peer.closes, 1);
	assert_int_equal(peer.error, -ECONNRESET);
	close(fd);
	loop_free(loop);
}

/* Writes as much of the sequence as the socket accepts; returns that number of bytes. */
static size_t write_sequence(int fd, size_t at, size_t len)
{
	uint8_t *block = malloc(len);
	ssize_t n;

	for (size_t i = 0; i < len; i++)
		block[i] = sequence(at + i);
	n = send(fd, block, len, MSG_DONTWAIT);
	free(block);
	return n > 0 ? (size_t)n : 0;
}

/* What was already received, in whatever way, waits, too. */
static void a_stream_that_pauses_itself_gets_the_rest_later(void **state)
{
	struct loop *loop = loop_new();
	struct peer peer;
	int fd = connect_peer(loop, &peer), i;
	size_t sent = 0, calls;

	(void)state;
	peer.pause_self = true;
	for (i = 0; i < 200; i++) {
		sent += write_sequence(fd, sent, 50000);
		calls = peer.calls;
		turn(loop);
		assert_int_equal(peer.calls, calls + 1);
		assert_int_equal(loop_turn(loop, 0), 0);
		assert_int_equal(peer.calls, calls + 1);
		loop_stream_pause(peer.stream, false);
	}
	peer.pause_self = false;
	/* The end is delivered after everything sent before it. */
	close(fd);
	for (i = 0; i < 1000 && !peer.closes; i++)
		turn(loop);
	assert_int_equal(peer.closes, 1);
	assert_int_equal(peer.error, 0);
	assert_int_equal(peer.bytes, sent);
	assert_false(peer.disorder);
	loop_free(loop);
}

/* More at once than all of the loop's buffers hold. */
static void many_streams_at_once_lose_nothing(void **state)
{
	enum { PEERS = 200 };
	struct loop *loop = loop_new();
	static struct peer peer[PEERS];
	size_t sent[PEERS] = {0}, all = 0, got = 0;
	int fd[PEERS], i, round;

	(void)state;
	for (i = 0; i < PEERS; i++)
		fd[i] = connect_peer(loop, &peer[i]);
	for (round = 0; round < 4; round++) {
		for (i = 0; i < PEERS; i++) {
			size_t n = write_sequence(fd[i], sent[i], 60000);

			sent[i] += n;
			all += n;
		}
		/* Some pause for a while, and one is closed. */
		for (i = round; i < PEERS; i += 7)
			loop_stream_pause(peer[i].stream, !(round & 1));
		assert_int_equal(loop_turn(loop, 0), 0);
	}
	for (i = 0; i < PEERS; i++)
		loop_stream_pause(peer[i].stream, false);
	for (round = 0; round < 5000 && got < all; round++) {
		turn(loop);
		for (got = 0, i = 0; i < PEERS; i++)
			got += peer[i].bytes;
	}
	for (i = 0; i < PEERS; i++) {
		assert_int_equal(peer[i].bytes, sent[i]);
		assert_false(peer[i].disorder);
		close(fd[i]);
	}
	loop_free(loop);
}

static void on_file(void *arg, int result)
{
	*(int *)arg = result;
}

/* Data that arrives during the wait stays in order. */
static void a_file_can_be_waited_for_amid_receiving(void **state)
{
	enum { PEERS = 20 };
	struct loop *loop = loop_new();
	struct loop_file *file;
	static struct peer peer[PEERS];
	size_t sent[PEERS] = {0}, all = 0, got = 0;
	int fd[PEERS], i, round, written = 0;

	(void)state;
	file = loop_file_new(loop, on_file, &written);
	if (!file) {
		printf("no io_uring here: %s\n", strerror(errno));
		loop_free(loop);
		return;
	}
	for (i = 0; i < PEERS; i++) {
		fd[i] = connect_peer(loop, &peer[i]);
		peer[i].file = loop_file_new(loop, on_file, &peer[i].written);
		peer[i].file_fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		assert_true(peer[i].file_fd >= 0);
	}
	for (round = 0; round < 2000 && (round < 50 || got < all); round++) {
		for (got = 0, i = 0; i < PEERS; i++) {
			size_t n = round < 50 ? write_sequence(fd[i], sent[i], 30000) : 0;

			sent[i] += n;
			all += n;
			got += peer[i].bytes;
		}
		turn(loop);
	}
	for (i = 0; i < PEERS; i++) {
		assert_int_equal(peer[i].bytes, sent[i]);
		assert_int_equal(lseek(peer[i].file_fd, 0, SEEK_END), sent[i]);
		assert_false(peer[i].disorder);
		loop_file_free(peer[i].file);
		close(peer[i].file_fd);
		close(fd[i]);
	}
	/* A file that cannot be written reports an error. */
	loop_file_write(file, -1, "x", 1, 0);
	assert_int_equal(loop_file_wait(file), 0);
	assert_int_equal(written, -EBADF);
	loop_file_free(file);
	loop_free(loop);
}

static void what_is_queued_at_the_close_is_sent(void **state)
{
	struct loop *loop = loop_new();
	struct peer peer;
	int fd = connect_peer(loop, &peer);
	char got[16];

	(void)state;
	/* One has just disconnected, and its end has not been delivered yet. */
	assert_int_equal(write(fd, "x", 1), 1);
	loop_set_round_end(loop, round_end_send, &peer);
	turn(loop);
	loop_set_round_end(loop, NULL, NULL);
	loop_stream_send(peer.stream, "two", 3);
	loop_stream_close(peer.stream);
	assert_int_equal(loop_turn(loop, 0), 0);
	assert_int_equal(recv(fd, got, sizeof(got), MSG_WAITALL), 6);
	assert_memory_equal(got, "acktwo", 6);
	close(fd);
	loop_free(loop);
}

/* The kernel may still be sending and receiving: it must not access freed memory. */
static void a_loop_may_be_freed_with_everything_under_way(void **state)
{
	static char block[LOOP_SEND_QUEUE];
	struct loop *loop = loop_new();
	struct peer full, paused, closed;
	int fd[3] = {connect_peer(loop, &full), connect_peer(loop, &paused),
		     connect_peer(loop, &closed)};
	int pipe_fd[2], i;

	(void)state;
	assert_int_equal(pipe(pipe_fd), 0);
	assert_non_null(loop_watch_new(loop, pipe_fd[0], NULL, NULL));
	for (i = 0; i < 100; i++) {
		loop_stream_send(full.stream, block, sizeof(block));
		loop_stream_send(closed.stream, block, sizeof(block));
		assert_int_equal(loop_turn(loop, 0), 0);
	}
	assert_int_equal(loop_stream_send(full.stream, block, sizeof(block)), -ENOBUFS);
	paused.pause_self = true;
	for (i = 0; i < 10; i++)
		write_sequence(fd[1], paused.at, 50000);
	assert_int_equal(loop_turn(loop, 0), 0);
	loop_stream_close(closed.stream);
	loop_free(loop);
	assert_int_equal(full.closes + paused.closes + closed.closes, 0);
	for (i = 0; i < 3; i++)
		close(fd[i]);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

static void streams_may_close_themselves_and_others(void **state)
{
	struct loop *loop = loop_new();
	struct peer a, b;
	int fd_a = connect_peer(loop, &a), fd_b = connect_peer(loop, &b);
	char c;

	(void)state;
	a.victim = b.stream;
	b.victim = a.stream;
	a.close_self = b.close_self = true;
	assert_int_equal(write(fd_a, "x", 1), 1);
	assert_int_equal(write(fd_b, "x", 1), 1);
	turn(loop);
	assert_int_equal(a.calls + b.calls, 1); /* the second was closed before its turn */
	assert_int_equal(a.closes + b.closes, 0);
	assert_true(recv(fd_a, &c, 1, 0) <= 0);
	assert_true(recv(fd_b, &c, 1, 0) <= 0);
	close(fd_a);
	close(fd_b);
	loop_free(loop);
}

static void finish_sends_what_is_queued_then_ends(void **state)
{
	struct loop *loop = loop_new();
	struct peer peer;
	int fd = connect_peer(loop, &peer);
	char got[8];

	(void)state;
	loop_stream_send(peer.stream, "bye", 3);
	loop_stream_finish(peer.stream);
	assert_int_equal(loop_turn(loop, 0), 0);
	assert_int_equal(recv(fd, got, sizeof(got), 0), 3);
	assert_int_equal(recv(fd, got, sizeof(got), 0), 0);
	assert_int_equal(write(fd, "late", 4), 4);
	turn(loop);
	assert_int_equal(peer.bytes, 4);
	close(fd);
	turn(loop);
	assert_int_equal(peer.closes, 1);
	loop_free(loop);
}

static void count_accept(void *arg, int fd)
{
	++*(unsigned int *)arg;
	close(fd);
}

static void accepting_is_bounded_per_round(void **state)
{
	struct net_address address;
	struct loop *loop = loop_new();
	unsigned int accepted = 0, i, want = LOOP_ACCEPT_MAX + 5;
	int fd[LOOP_ACCEPT_MAX + 5], listen_fd;
	struct loop_listener *listener;

	(void)state;
	assert_int_equal(net_parse(&address, "127.0.0.1:0", 1), 0);
	listen_fd = net_listen(&address, 64);
	assert_true(listen_fd >= 0);
	assert_int_equal(net_local(listen_fd, &address), 0);
	listener = loop_listener_new(loop, listen_fd, count_accept, &accepted);
	assert_non_null(listener);
	for (i = 0; i < want; i++)
		fd[i] = net_connect(&address);
	turn(loop);
	assert_int_equal(accepted, LOOP_ACCEPT_MAX);
	turn(loop);
	assert_int_equal(accepted, want);
	for (i = 0; i < want; i++)
		close(fd[i]);
	loop_listener_close(listener);
	loop_free(loop);
}

static void count(void *arg)
{
	++*(int *)arg;
}

static void count_signal(void *arg, int signo)
{
	*(int *)arg = signo;
}

static void stop_loop(void *arg)
{
	loop_stop(arg);
}

static void timers_fire_once_and_can_be_switched_off(void **state)
{
	struct loop *loop = loop_new();
	int fired = 0, never = 0;
	struct loop_timer *timer = loop_timer_new(loop, count, &fired);
	struct loop_timer *off = loop_timer_new(loop, count, &never);
	struct loop_timer *gone = loop_timer_new(loop, count, &never);
	struct loop_timer *end = loop_timer_new(loop, stop_loop, loop);

	(void)state;
	loop_timer_set(timer, 5);
	loop_timer_set(off, 5);
	loop_timer_set(gone, 5);
	loop_timer_set(off, -1);
	loop_timer_free(gone);
	loop_timer_set(end, 40);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(fired, 1);
	assert_int_equal(never, 0);
	loop_free(loop);
}

static void signals_and_foreign_descriptors_wake_the_loop(void **state)
{
	struct loop *loop = loop_new();
	int seen = 0, readable = 0, fd[2];
	struct loop_watch *watch;
	sigset_t mask;

	(void)state;
	assert_int_equal(loop_signal(loop, SIGUSR1, count_signal, &seen), 0);
	assert_int_equal(raise(SIGUSR1), 0);
	turn(loop);
	assert_int_equal(seen, SIGUSR1);
	assert_int_equal(pipe(fd), 0);
	watch = loop_watch_new(loop, fd[0], count, &readable);
	assert_int_equal(loop_turn(loop, 0), 0);
	assert_int_equal(readable, 0);
	assert_int_equal(write(fd[1], "x", 1), 1);
	turn(loop);
	assert_int_equal(readable, 1);
	loop_watch_free(watch);
	loop_free(loop);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	assert_false(sigismember(&mask, SIGUSR1));
	assert_int_equal(fcntl(fd[0], F_GETFD) < 0, 0); /* a watch does not own its descriptor */
	close(fd[0]);
	close(fd[1]);
}

/* Events wait until the rest is over; a rest is for one round. */
static void a_rest_comes_before_one_round(void **state)
{
	const uint64_t rest_ns = UINT64_C(200000000);
	struct loop *loop = loop_new();
	struct peer peer;
	int fd = connect_peer(loop, &peer), i;
	uint64_t begin_ns = clock_mono_ns();

	(void)state;
	loop_rest(loop, rest_ns);
	for (i = 0; i < 20; i++) {
		assert_int_equal(write(fd, "x", 1), 1);
		turn(loop);
		assert_int_equal(peer.bytes, i + 1);
		assert_true(clock_mono_ns() - begin_ns >= rest_ns);
	}
	assert_true(clock_mono_ns() - begin_ns < 15 * rest_ns);
	loop_free(loop);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_arrive_in_bounded_pieces),
		cmocka_unit_test(what_the_round_end_sends_leaves_in_that_round),
		cmocka_unit_test(a_slow_reader_fills_its_queue_only),
		cmocka_unit_test(a_paused_stream_gets_nothing),
		cmocka_unit_test(a_stream_that_pauses_itself_gets_the_rest_later),
		cmocka_unit_test(many_streams_at_once_lose_nothing),
		cmocka_unit_test(a_file_can_be_waited_for_amid_receiving),
		cmocka_unit_test(what_is_queued_at_the_close_is_sent),
		cmocka_unit_test(a_loop_may_be_freed_with_everything_under_way),
		cmocka_unit_test(streams_may_close_themselves_and_others),
		cmocka_unit_test(finish_sends_what_is_queued_then_ends),
		cmocka_unit_test(accepting_is_bounded_per_round),
		cmocka_unit_test(timers_fire_once_and_can_be_switched_off),
		cmocka_unit_test(signals_and_foreign_descriptors_wake_the_loop),
		cmocka_unit_test(a_rest_comes_before_one_round),
	};

	return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
