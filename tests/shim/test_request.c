/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_request.c - a request that another thread performs: its task's lock wait meanwhile is a wait
 * for the network, and the bytes move from unattributed to the task.
 */
#include "harness.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "shim/count/overlap.h"
#include "shim/count/request.h"

#define MS 1000000u

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;
static int is_answered;

static void *answer(void *arg)
{
	(void)arg;
	usleep(200000);
	pthread_mutex_lock(&mutex);
	is_answered = 1;
	pthread_cond_signal(&answered);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void wait_for_answer(void)
{
	pthread_t t;

	is_answered = 0;
	assert_int_equal(pthread_create(&t, NULL, answer, NULL), 0);
	pthread_mutex_lock(&mutex);
	while (!is_answered)
		pthread_cond_wait(&answered, &mutex);
	pthread_mutex_unlock(&mutex);
	pthread_join(t, NULL);
}

static void a_lock_wait_during_a_request_is_the_networks(void **state)
{
	struct harness_task h = harness_begin();
	const struct crema_task *t;
	uint64_t name = task_name(h.owner);

	(void)state;
	request_begin(name);
	request_begin(name); /* concurrent, and not finished when the wait ends */
	wait_for_answer();
	request_end(name);
	request_end(name);
	t = harness_end(&h);
	assert_true(t->own.time[CREMA_T_network_wait] >= 150 * MS);
	assert_true(t->own.time[CREMA_T_network_wait] <= harness_wall_ns(t));
	assert_true(t->own.time[CREMA_T_lock_wait] <= t->own.time[CREMA_T_network_wait] / 10);
	harness_free(&h);
}

/* gRPC's threads take turns at the socket: one that waits there may time out, or be woken for
 * another's. */
static void wait_in_epoll(int milliseconds)
{
	struct epoll_event e;
	int events = epoll_create1(0);

	assert_int_equal(epoll_wait(events, &e, 1, milliseconds), 0);
	close(events);
}

static void an_epoll_that_times_out_during_a_request_is_the_networks(void **state)
{
	struct harness_task h = harness_begin();
	const struct crema_task *t;

	(void)state;
	request_begin(task_name(h.owner));
	wait_in_epoll(200);
	request_end(task_name(h.owner));
	wait_in_epoll(100);
	usleep(50000);
	t = harness_end(&h);
	assert_true(t->own.time[CREMA_T_network_wait] >= 150 * MS);
	assert_true(t->own.time[CREMA_T_network_wait] <= harness_wall_ns(t) - 100 * MS);
	assert_true(t->own.time[CREMA_T_sleep] >= 100 * MS);
	harness_free(&h);
}

static void a_sleep_during_a_request_is_sleep(void **state)
{
	struct harness_task h = harness_begin();
	const struct crema_task *t;

	(void)state;
	request_begin(task_name(h.owner));
	usleep(200000);
	request_end(task_name(h.owner));
	t = harness_end(&h);
	assert_true(t->own.time[CREMA_T_sleep] >= 150 * MS);
	assert_true(t->own.time[CREMA_T_network_wait] <= 10 * MS);
	harness_free(&h);
}

static void a_lock_wait_after_it_is_a_lock_wait(void **state)
{
	struct harness_task h = harness_begin();
	const struct crema_task *t;

	(void)state;
	request_begin(task_name(h.owner));
	request_end(task_name(h.owner));
	request_end(task_name(h.owner)); /* an extra end has no effect */
	wait_for_answer();
	t = harness_end(&h);
	assert_true(t->own.time[CREMA_T_lock_wait] >= 150 * MS);
	assert_true(t->own.time[CREMA_T_network_wait] <= 10 * MS);
	harness_free(&h);
}

static void received_bytes_are_the_tasks_until_its_record_is_gone(void **state)
{
	const struct crema_totals *all = &crema_shm->totals;
	uint64_t claimed = all->claimed_network_read_bytes;
	uint64_t tasks = all->tasks.count[CREMA_C_network_read_bytes];
	struct harness_task h = harness_begin();
	uint64_t name = task_name(h.owner);
	const struct crema_task *t;
	uint32_t version;

	(void)state;
	request_received(name, 100);
	t = harness_end(&h);
	version = t->version;
	request_received(name, 20); /* late: its record is sent again */
	assert_int_equal(t->own.count[CREMA_C_network_read_bytes], 120);
	assert_true(t->version > version);
	harness_free(&h);
	request_begin(name);
	request_end(name);
	request_received(name, 7);
	request_received(0, 7);
	assert_int_equal(all->claimed_network_read_bytes - claimed, 120);
	assert_int_equal(all->tasks.count[CREMA_C_network_read_bytes] - tasks, 120);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lock_wait_during_a_request_is_the_networks),
		cmocka_unit_test(an_epoll_that_times_out_during_a_request_is_the_networks),
		cmocka_unit_test(a_sleep_during_a_request_is_sleep),
		cmocka_unit_test(a_lock_wait_after_it_is_a_lock_wait),
		cmocka_unit_test(received_bytes_are_the_tasks_until_its_record_is_gone),
	};

	return cmocka_run_group_tests_name("shim request", tests, harness_setup, NULL);
}
