/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_timer.c - waits for descriptors that time out. Each scene defines their classes; each lasts
 * 50 ms, so that the classes can be distinguished on a busy machine, too.
 */
#include "harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/count/timer.h"

#define MS 1000000ull
enum { NAP = 50, SOCKETS = 2 };

static int listener, events, ours[SOCKETS], theirs[SOCKETS];
static struct sockaddr_in address = {.sin_family = AF_INET};

/* The server's end is not the task's: the shim does not see it. */
static void ask(int i)
{
	char c;

	assert_int_equal(send(ours[i], "?", 1, 0), 1);
	assert_int_equal(syscall(SYS_read, theirs[i], &c, 1), 1);
}

static void answer(int i)
{
	char c;

	assert_int_equal(syscall(SYS_write, theirs[i], "!", 1), 1);
	assert_int_equal(recv(ours[i], &c, 1, 0), 1);
}

/* What a loop does for a timer: no event of its set arrives. */
static void timer(void)
{
	struct epoll_event e;

	assert_int_equal(epoll_wait(events, &e, 1, NAP), 0);
}

/* The scene so far was sleep, network and lock for these numbers of naps. */
static void classes_are(struct harness_task *h, uint64_t sleep, uint64_t network, uint64_t lock)
{
	const uint64_t *time = harness_end(h)->own.time;
	uint64_t is[] = {time[CREMA_T_sleep], time[CREMA_T_network_wait], time[CREMA_T_lock_wait]};
	uint64_t want[] = {sleep, network, lock};

	print_message("sleep %.1f, network %.1f, lock %.1f ms\n", (double)is[0] / 1e6,
		      (double)is[1] / 1e6, (double)is[2] / 1e6);
	for (int i = 0; i < 3; i++) {
		assert_true(is[i] + NAP * MS / 5 > want[i] * NAP * MS);
		assert_true(want[i] ? is[i] < want[i] * NAP * MS + 500 * MS : is[i] < NAP * MS / 5);
	}
	harness_free(h);
}

/* If most of a sleep was something else, only the rest becomes the network's. */
static void no_more_than_is_left_of_a_sleep(void **state)
{
	struct harness_task h = harness_begin();
	uint64_t *time = thread_self()->seg.time, before;

	(void)state;
	ask(0);
	timer();
	time[CREMA_T_lock_wait] = 3000 * MS;
	time[CREMA_T_sleep] = 700 * MS;
	timer_slept(thread_self(), 900 * MS);
	before = time[CREMA_T_network_wait];
	timer_answered(ours[0], 1);
	assert_int_equal(time[CREMA_T_sleep], 0);
	assert_int_equal(time[CREMA_T_network_wait] - before, 700 * MS);
	assert_int_equal(time[CREMA_T_lock_wait], 3000 * MS);
	answer(0);
	harness_end(&h);
	harness_free(&h);
}

/* A loop that has communicated with a server before; the connection is kept. */
static void a_timer_beside_an_idle_connection(void **state)
{
	struct harness_task h = harness_begin();

	(void)state;
	timer();
	ask(0);
	answer(0);
	timer();
	ask(0);
	answer(0);
	classes_are(&h, 2, 0, 0);
}

static void a_timer_while_a_request_is_under_way(void **state)
{
	struct harness_task h = harness_begin();

	(void)state;
	ask(0);
	timer();
	ask(1);
	answer(1);
	timer();
	answer(0);
	timer();
	classes_are(&h, 1, 2, 0);
}

static void a_request_that_was_given_up(void **state)
{
	struct harness_task h = harness_begin();
	int copy = dup(ours[0]);

	(void)state;
	ask(0);
	timer();
	/* the client closes its connection */
	assert_int_equal(dup2(copy, ours[0]), ours[0]);
	timer();
	classes_are(&h, 1, 1, 0);
	close(copy);
}

static void a_timer_within_an_answer(void **state)
{
	struct harness_task h = harness_begin();

	(void)state;
	ask(0);
	answer(0);
	timer();
	timer();
	answer(0);
	timer();
	ask(1);
	answer(1);
	classes_are(&h, 1, 2, 0);
}

/* time.sleep() of Python 3.10 is one of them. */
static void a_sleep_without_descriptors_within_an_answer(void **state)
{
	struct harness_task h = harness_begin();
	struct timeval tv = {0, NAP * 1000};

	(void)state;
	ask(0);
	answer(0);
	assert_int_equal(select(0, NULL, NULL, NULL, &tv), 0);
	assert_int_equal(poll(NULL, 0, NAP), 0);
	timer();
	answer(0);
	classes_are(&h, 2, 1, 0);
}

/* A nap during two responses is the network's once; earlier ones belong to no response. */
static void a_timer_within_two_answers(void **state)
{
	struct harness_task h = harness_begin();

	(void)state;
	timer();
	timer();
	for (int i = 0; i < 2; i++) {
		ask(i);
		answer(i);
	}
	timer();
	answer(0);
	answer(1);
	classes_are(&h, 2, 1, 0);
}

/* Sleep before the segment's start has been counted already. */
static void an_answer_in_another_segment(void **state)
{
	struct harness_task h = harness_begin();

	(void)state;
	ask(0);
	answer(0);
	timer();
	segment_end(segment_begin(h.owner, 0));
	usleep(NAP * 1000);
	answer(0);
	classes_are(&h, 2, 0, 0);
}

/* Of two naps around a segment's start only the second is in the response's segment. */
static void an_answer_over_two_segments(void **state)
{
	struct harness_task h = harness_begin();

	(void)state;
	ask(0);
	answer(0);
	timer();
	segment_end(segment_begin(h.owner, 0));
	usleep(NAP * 1000);
	timer();
	answer(0);
	classes_are(&h, 2, 1, 0);
}

/* The listener has room for one connection that it does not accept. */
static void a_connection_that_is_not_made(void **state)
{
	socklen_t size = sizeof(address);
	struct harness_task h = harness_begin();
	int first = socket(AF_INET, SOCK_STREAM, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	(void)state;
	assert_int_equal(connect(first, (struct sockaddr *)&address, size), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, size), -1);
	assert_int_equal(errno, EINPROGRESS);
	timer();
	close(fd);
	timer();
	close(first);
	classes_are(&h, 1, 1, 0);
}

static void *late(void *arg)
{
	usleep(NAP * 1000);
	assert_int_equal(syscall(SYS_write, *(int *)arg, "!", 1), 1);
	return NULL;
}

static void poll_and_select_name_what_they_wait_for(void **state)
{
	struct harness_task h = harness_begin();
	struct timeval tv = {0, NAP * 1000};
	struct pollfd p = {-1, POLLIN, 0};
	pthread_t other;
	int pipes[2];
	fd_set set;
	char c;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	p.fd = pipes[0];
	assert_int_equal(poll(&p, 1, NAP), 0); /* sleep */
	FD_ZERO(&set);
	FD_SET(pipes[0], &set);
	assert_int_equal(select(pipes[0] + 1, &set, NULL, NULL, &tv), 0); /* sleep */
	assert_int_equal(pthread_create(&other, NULL, late, &pipes[1]), 0);
	assert_int_equal(poll(&p, 1, 5000), 1); /* lock */
	assert_int_equal(read(pipes[0], &c, 1), 1);
	pthread_join(other, NULL);
	FD_SET(pipes[0], &set);
	assert_int_equal(pthread_create(&other, NULL, late, &pipes[1]), 0);
	assert_int_equal(select(pipes[0] + 1, &set, NULL, NULL, NULL), 1); /* lock */
	pthread_join(other, NULL);
	p.fd = ours[0];
	assert_int_equal(poll(&p, 1, NAP), 0); /* network */
	ask(1);
	FD_ZERO(&set);
	FD_SET(ours[1], &set);
	assert_int_equal(pthread_create(&other, NULL, late, &theirs[1]), 0);
	assert_int_equal(select(ours[1] + 1, NULL, NULL, &set, &tv), 0); /* tv is now 0 */
	FD_SET(ours[1], &set);
	assert_int_equal(select(ours[1] + 1, &set, NULL, NULL, NULL), 1); /* network */
	assert_int_equal(recv(ours[1], &c, 1, 0), 1);
	pthread_join(other, NULL);
	close(pipes[0]);
	close(pipes[1]);
	classes_are(&h, 2, 2, 2);
}

static void what_cannot_be_read_is_not_looked_at(void **state)
{
	void *volatile nowhere = (void *)16;
	struct harness_task h = harness_begin();

	(void)state;
	assert_int_equal(poll(nowhere, 1, 0), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(select(1, nowhere, NULL, NULL, NULL), -1);
	assert_int_equal(errno, EFAULT);
	classes_are(&h, 0, 0, 0);
}

static int arm(void **state)
{
	socklen_t size = sizeof(address);

	(void)state;
	harness_arm();
	listener = socket(AF_INET, SOCK_STREAM, 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(listener, 0), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	events = epoll_create1(0);
	for (int i = 0; i < SOCKETS; i++) {
		struct epoll_event e = {.events = EPOLLIN};

		ours[i] = socket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(connect(ours[i], (struct sockaddr *)&address, size), 0);
		theirs[i] = accept(listener, NULL, NULL);
		assert_int_equal(epoll_ctl(events, EPOLL_CTL_ADD, ours[i], &e), 0);
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_timer_beside_an_idle_connection),
		cmocka_unit_test(no_more_than_is_left_of_a_sleep),
		cmocka_unit_test(a_timer_while_a_request_is_under_way),
		cmocka_unit_test(a_request_that_was_given_up),
		cmocka_unit_test(a_timer_within_an_answer),
		cmocka_unit_test(a_sleep_without_descriptors_within_an_answer),
		cmocka_unit_test(a_timer_within_two_answers),
		cmocka_unit_test(an_answer_in_another_segment),
		cmocka_unit_test(an_answer_over_two_segments),
		cmocka_unit_test(a_connection_that_is_not_made),
		cmocka_unit_test(poll_and_select_name_what_they_wait_for),
		cmocka_unit_test(what_cannot_be_read_is_not_looked_at),
	};

	return cmocka_run_group_tests_name("shim timer", tests, arm, NULL);
}
