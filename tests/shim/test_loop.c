/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_loop.c - a task's thread in a lock wait while a loop's thread, which has no task, waits for
 * the response to the task's request: that is a wait for the network. The loop measures how much of
 * a scene is one, step by step, and shares are compared: on a busy machine all of it takes longer.
 */
#include "harness.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/count/loop.h"
#include "shim/count/net.h"
#include "shim/count/op.h"

#define MS 1000000ull
enum { SOCKETS = 2, STEPS = 8 };

/* Two connections; responses to writes on `ours` come from `theirs`. */
static int ours[SOCKETS], theirs[SOCKETS], events;

/* The loop's steps, in order: it writes for `name`, waits until a socket has bytes, computes, or
 * waits for a timer without or with a pending response. */
struct step {
	enum { END, WRITE, RECEIVE, SPIN, IDLE, BETWEEN } what;
	int socket; /* or ms */
};
/* The peer's steps: it sleeps this long, then responds on a socket. */
struct answer {
	unsigned int ms;
	int socket;
};

struct scene {
	uint64_t name;
	struct step steps[STEPS];
	struct answer answers[STEPS];
	sem_t done;
	uint64_t start_ns, network_ns, all_ns;
};

static void nap(unsigned int ms)
{
	struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};

	nanosleep(&t, NULL);
}

static void *peer(void *arg)
{
	const struct scene *s = arg;

	for (int i = 0; i < STEPS && s->answers[i].ms; i++) {
		nap(s->answers[i].ms);
		assert_int_equal(send(theirs[s->answers[i].socket], "answer", 6, 0), 6);
	}
	return NULL;
}

static void receive_on(int socket)
{
	struct epoll_event e;
	char buf[64];

	do
		assert_true(epoll_wait(events, &e, 1, -1) == 1);
	while (e.data.fd != ours[socket]);
	assert_int_equal(recv(ours[socket], buf, sizeof(buf), 0), 6);
}

static void do_step(struct scene *s, const struct step *step)
{
	struct epoll_event e;

	switch (step->what) {
	case WRITE:
		net_bind(ours[step->socket], s->name, 0);
		assert_int_equal(send(ours[step->socket], "request", 7, 0), 7);
		break;
	case RECEIVE:
		receive_on(step->socket);
		break;
	case IDLE:
	case BETWEEN:
		epoll_wait(events, &e, 1, step->socket);
		break;
	default:
		harness_spin((uint64_t)step->socket * MS);
	}
}

static void *run_loop(void *arg)
{
	struct scene *s = arg;

	for (int i = 0; i < STEPS && s->steps[i].what != END; i++) {
		uint64_t start = harness_now_ns();

		do_step(s, &s->steps[i]);
		if (s->steps[i].what == RECEIVE || s->steps[i].what == BETWEEN)
			s->network_ns += harness_now_ns() - start;
	}
	s->all_ns = harness_now_ns() - s->start_ns; /* includes delays on a busy machine */
	sem_post(&s->done);
	return NULL;
}

/* Plays the scene while a task waits, in pieces of `piece_ms`. The network's share of its waits
 * equals that of the scene, or 0 if it was not the task's. */
static void play(struct scene *s, int named, unsigned int piece_ms)
{
	struct harness_task h = harness_begin();
	double network, lock, share, truth;
	pthread_t threads[2];
	struct timespec until;
	const uint64_t *time;

	s->name = named ? task_name(h.owner) : 0;
	sem_init(&s->done, 0, 0);
	s->start_ns = harness_now_ns();
	assert_int_equal(pthread_create(&threads[0], NULL, run_loop, s), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, peer, s), 0);
	do {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += (long)piece_ms * 1000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
	} while (sem_timedwait(&s->done, &until));
	time = harness_end(&h)->own.time;
	network = (double)time[CREMA_T_network_wait];
	lock = (double)time[CREMA_T_lock_wait];
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	share = network / (network + lock);
	truth = named ? (double)s->network_ns / (double)s->all_ns : 0;
	print_message("network %.1f ms, lock %.1f ms: %.3f, of the scene %.3f\n", network / 1e6,
		      lock / 1e6, share, truth);
	assert_true(network + lock > 100 * MS);
	assert_true(share < truth + 0.05 && share > truth - 0.05);
	harness_free(&h);
}

#define SCENE(name, named, piece_ms, ...)                                                          \
	static void name(void **state)                                                             \
	{                                                                                          \
		struct scene s = {0, __VA_ARGS__, {{0}}, 0, 0, 0};                                 \
		(void)state;                                                                       \
		play(&s, named, piece_ms);                                                         \
	}
#define LIST(...)                                                                                  \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

SCENE(a_late_answer_is_network, 1, 5000, LIST({WRITE, 0}, {RECEIVE, 0}), LIST({200, 0}))
SCENE(a_wait_in_pieces_is_network_too, 1, 60, LIST({WRITE, 0}, {RECEIVE, 0}), LIST({250, 0}))
SCENE(work_before_the_last_piece_is_a_lock, 1, 60, LIST({WRITE, 0}, {SPIN, 100}, {RECEIVE, 0}),
      LIST({200, 0}))
SCENE(what_another_asked_for_is_a_lock, 0, 5000, LIST({WRITE, 0}, {RECEIVE, 0}), LIST({200, 0}))
SCENE(the_loops_own_work_is_a_lock, 1, 5000,
      LIST({WRITE, 0}, {RECEIVE, 0}, {SPIN, 150}, {WRITE, 0}, {RECEIVE, 0}),
      LIST({200, 0}, {400, 0}))
SCENE(a_pause_between_requests_is_a_lock, 1, 5000,
      LIST({WRITE, 0}, {RECEIVE, 0}, {IDLE, 150}, {WRITE, 0}, {RECEIVE, 0}),
      LIST({100, 0}, {300, 0}))
SCENE(requests_side_by_side_count_once, 1, 5000,
      LIST({WRITE, 0}, {WRITE, 1}, {RECEIVE, 0}, {RECEIVE, 1}), LIST({150, 0}, {150, 1}))
/* The second response arrived while the loop computed. */
SCENE(work_between_answers_is_a_lock, 1, 5000,
      LIST({WRITE, 0}, {WRITE, 1}, {RECEIVE, 0}, {SPIN, 150}, {RECEIVE, 1}),
      LIST({100, 0}, {50, 1}))
/* While one response arrives in pieces, another request is written and answered. */
SCENE(a_request_within_an_answer, 1, 5000,
      LIST({WRITE, 0}, {RECEIVE, 0}, {BETWEEN, 100}, {WRITE, 1}, {RECEIVE, 1}, {RECEIVE, 0}),
      LIST({100, 0}, {200, 1}, {100, 0}))

/* As a loop that waited for a second, between two signals from the task's thread. */
struct answer_by {
	uint64_t name;
	volatile int step;
};

static void *answer(void *arg)
{
	struct answer_by *a = arg;

	while (a->step < 1)
		;
	loop_wrote(ours[0], a->name);
	loop_waited(1000 * MS);
	a->step = 2;
	while (a->step < 3)
		;
	loop_received(ours[0], a->name, 5);
	a->step = 4;
	return NULL;
}

/* The whole lock wait is the request's, but not what the thread computed meanwhile. */
static void no_more_than_was_waited(void **state)
{
	struct timespec t = {0, 20000000};
	struct harness_task h = harness_begin();
	struct answer_by a = {.name = task_name(h.owner)};
	const uint64_t *time;
	uint64_t start;
	pthread_t loop;
	struct op op;
	int object;

	(void)state;
	assert_int_equal(pthread_create(&loop, NULL, answer, &a), 0);
	start = harness_now_ns();
	wait_begin(&op, &object);
	a.step = 1;
	while (a.step < 2)
		;
	harness_spin(20 * MS);
	syscall(SYS_nanosleep, &t, NULL);
	a.step = 3;
	while (a.step < 4)
		;
	wait_end(&op, 0);
	start = harness_now_ns() - start;
	time = harness_end(&h)->own.time;
	pthread_join(loop, NULL);
	assert_int_equal(time[CREMA_T_lock_wait], 0);
	assert_in_range(time[CREMA_T_network_wait], 19 * MS, start - 19 * MS);
	harness_free(&h);
}

static int arm(void **state)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(a);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	(void)state;
	harness_arm();
	assert_int_equal(bind(listener, (struct sockaddr *)&a, size), 0);
	assert_int_equal(listen(listener, SOCKETS), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &size), 0);
	events = epoll_create1(0);
	for (int i = 0; i < SOCKETS; i++) {
		struct epoll_event e = {.events = EPOLLIN};

		ours[i] = socket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(connect(ours[i], (struct sockaddr *)&a, size), 0);
		theirs[i] = accept(listener, NULL, NULL);
		e.data.fd = ours[i];
		assert_int_equal(epoll_ctl(events, EPOLL_CTL_ADD, ours[i], &e), 0);
	}
	close(listener);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_late_answer_is_network),
		cmocka_unit_test(a_wait_in_pieces_is_network_too),
		cmocka_unit_test(work_before_the_last_piece_is_a_lock),
		cmocka_unit_test(what_another_asked_for_is_a_lock),
		cmocka_unit_test(the_loops_own_work_is_a_lock),
		cmocka_unit_test(a_pause_between_requests_is_a_lock),
		cmocka_unit_test(requests_side_by_side_count_once),
		cmocka_unit_test(work_between_answers_is_a_lock),
		cmocka_unit_test(a_request_within_an_answer),
		cmocka_unit_test(no_more_than_was_waited),
	};

	return cmocka_run_group_tests_name("shim loop", tests, arm, NULL);
}
