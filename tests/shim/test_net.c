/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_net.c - which task bytes belong to: the writer of the request owns the response, whichever
 * task opened the connection and whichever thread receives.
 */
#include "harness.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "shim/count/net.h"
#include "shim/python/notify.h"

static int client, server;

/* The response to a request of n bytes is 10 n bytes. */
static void answer(size_t n)
{
	char buf[4096];
	size_t got = 0;

	while (got < n) {
		ssize_t r = recv(server, buf, n - got, 0);

		assert_true(r > 0);
		got += (size_t)r;
	}
	memset(buf, 'a', sizeof(buf));
	assert_int_equal(send(server, buf, 10 * n, 0), (ssize_t)(10 * n));
}

static size_t receive(size_t n)
{
	char buf[4096];
	size_t got = 0;

	while (got < n) {
		ssize_t r = recv(client, buf, n - got, 0);

		assert_true(r > 0);
		got += (size_t)r;
	}
	return got;
}

static void request(size_t n)
{
	char buf[200];

	memset(buf, 'q', sizeof(buf));
	assert_int_equal(send(client, buf, n, 0), (ssize_t)n);
}

/* The server's side belongs to no task here: in reality it is another process. */
static void *serve(void *arg)
{
	answer(*(size_t *)arg);
	return NULL;
}

static void exchange(size_t n)
{
	pthread_t thread;

	request(n);
	assert_int_equal(pthread_create(&thread, NULL, serve, &n), 0);
	pthread_join(thread, NULL);
}

static void bytes_are(const struct crema_task *t, uint64_t in, uint64_t out)
{
	assert_int_equal(t->own.count[CREMA_C_network_read_bytes], in);
	assert_int_equal(t->own.count[CREMA_C_network_write_bytes], out);
}

static void three_tasks_in_turn_over_one_connection(void **state)
{
	(void)state;
	for (size_t n = 10; n <= 30; n += 10) {
		struct harness_task h = harness_begin();

		exchange(n);
		receive(10 * n);
		bytes_are(harness_end(&h), 10 * n, n);
		harness_free(&h);
	}
}

static void *receiver(void *arg)
{
	receive(*(size_t *)arg);
	return NULL;
}

static void another_thread_receives(void **state)
{
	struct harness_task h = harness_begin();
	size_t n = 15, all = 150;
	pthread_t thread;

	(void)state;
	exchange(n);
	assert_int_equal(pthread_create(&thread, NULL, receiver, &all), 0);
	pthread_join(thread, NULL);
	bytes_are(harness_end(&h), all, n);
	harness_free(&h);
}

static void a_request_of_nobody_after_a_tasks(void **state)
{
	uint64_t *nobody = crema_shm->totals.unattributed.count, before;
	struct harness_task h = harness_begin();

	(void)state;
	exchange(10);
	receive(100);
	bytes_are(harness_end(&h), 100, 10);
	exchange(20);
	receive(200);
	bytes_are(task_slot(h.owner), 100, 10);
	before = nobody[CREMA_C_network_read_bytes];
	segment_end(segment_begin(OWNER_NONE, 0)); /* folds */
	assert_true(nobody[CREMA_C_network_read_bytes] >= before);
	assert_true(nobody[CREMA_C_network_read_bytes] >= 200);
	harness_free(&h);
}

static void a_transport_binds_by_name_and_its_loop_does_not(void **state)
{
	struct harness_task a = harness_begin();
	uint64_t name = task_name(a.owner);
	struct owner out;

	(void)state;
	/* the loop's thread has no task; the write was a's */
	out = segment_begin(OWNER_NONE, 0);
	net_bind(client, name, 0);
	exchange(12);
	receive(120);
	net_bind(client, 0, 0); /* the next request is unattributed */
	exchange(7);
	receive(70);
	segment_end(out);
	bytes_are(harness_end(&a), 120, 12);
	harness_free(&a);
}

static void late_answers_are_credited_while_the_slot_is_there(void **state)
{
	struct harness_task h = harness_begin();
	struct crema_task *t;
	uint32_t version;

	(void)state;
	notify_fd_closed(client);
	task_ref(h.owner);
	exchange(10);
	t = harness_end(&h);
	version = t->version;
	receive(100);
	bytes_are(t, 100, 10);
	assert_true(t->version > version);
	task_unref(h.owner);
	harness_free(&h);
}

static void dask_connections_are_a_class_of_their_own(void **state)
{
	struct harness_task h = harness_begin();
	struct crema_task *t;

	(void)state;
	net_mark_comm(client);
	exchange(10);
	receive(100);
	t = harness_end(&h);
	bytes_are(t, 0, 0);
	assert_int_equal(t->own.count[CREMA_C_comm_read_bytes], 100);
	assert_int_equal(t->own.count[CREMA_C_comm_write_bytes], 10);
	harness_free(&h);
	notify_fd_closed(client);
}

static void a_shared_connection_is_nobodys(void **state)
{
	const struct crema_totals *totals = &crema_shm->totals;
	struct harness_task h = harness_begin();

	(void)state;
	notify_fd_closed(client);
	net_mark_shared(client);
	net_bind(client, task_name(h.owner), 0); /* too late */
	exchange(10);
	receive(100);
	bytes_are(harness_end(&h), 0, 0);
	assert_int_equal(totals->shared_network_read_bytes, 100);
	assert_int_equal(totals->shared_network_write_bytes, 10);
	harness_free(&h);
	notify_fd_closed(client);
}

/* Which use of a shared connection makes a task's received and sent bytes unknown. */
static void who_shares_a_connection_is_unknown(void **state)
{
	const uint64_t both =
		CREMA_COUNT_BIT(network_read_bytes) | CREMA_COUNT_BIT(network_write_bytes);

	(void)state;
	notify_fd_closed(client);
	net_mark_shared(client);
	for (int use = 0; use < 4; use++) {
		struct harness_task h = harness_begin();

		if (use == 1)
			net_bind(client, task_name(h.owner), 0);
		if (use == 2)
			exchange(10);
		if (use == 3)
			receive(100);
		assert_int_equal(harness_end(&h)->count_unknown & both, use ? both : 0);
		harness_free(&h);
	}
	notify_fd_closed(client);
}

static void every_way_to_send_and_receive_counts(void **state)
{
	char buf[100] = {0};
	struct iovec v = {buf, 10};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	struct harness_task h = harness_begin();

	(void)state;
	assert_int_equal(write(client, buf, 10), 10);
	assert_int_equal(writev(client, &v, 1), 10);
	assert_int_equal(sendto(client, buf, 10, 0, NULL, 0), 10);
	assert_int_equal(sendmsg(client, &m, 0), 10);
	assert_int_equal(recv(server, buf, 40, MSG_WAITALL), 40);
	assert_int_equal(send(server, buf, 50, 0), 50);
	assert_int_equal(read(client, buf, 10), 10);
	assert_int_equal(readv(client, &v, 1), 10);
	assert_int_equal(recvfrom(client, buf, 10, 0, NULL, NULL), 10);
	assert_int_equal(recvmsg(client, &m, 0), 10);
	assert_int_equal(recv(client, buf, 10, 0), 10);
	/* both ends are in this process: 40 + 50 each way */
	bytes_are(harness_end(&h), 90, 90);
	harness_free(&h);
}

/* Peeked data stays in the socket: it is received once. */
static void a_peek_receives_nothing(void **state)
{
	char buf[100] = {0};
	struct iovec v = {buf, sizeof(buf)};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	struct harness_task h = harness_begin();

	(void)state;
	assert_int_equal(write(client, buf, 10), 10);
	assert_int_equal(recv(server, buf, 10, MSG_WAITALL), 10);
	assert_int_equal(send(server, buf, 50, 0), 50);
	assert_int_equal(recv(client, buf, 40, MSG_PEEK | MSG_WAITALL), 40);
	assert_int_equal(recvfrom(client, buf, 100, MSG_PEEK, NULL, NULL), 50);
	assert_int_equal(recvmsg(client, &m, MSG_PEEK), 50);
	assert_int_equal(recv(client, buf, 100, 0), 50);
	bytes_are(harness_end(&h), 50, 60); /* the other end sends in this process, too */
	harness_free(&h);
}

static int arm(void **state)
{
	(void)state;
	harness_arm();
	harness_connect(&client, &server);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_tasks_in_turn_over_one_connection),
		cmocka_unit_test(another_thread_receives),
		cmocka_unit_test(a_request_of_nobody_after_a_tasks),
		cmocka_unit_test(every_way_to_send_and_receive_counts),
		cmocka_unit_test(a_peek_receives_nothing),
		cmocka_unit_test(a_shared_connection_is_nobodys),
		cmocka_unit_test(who_shares_a_connection_is_unknown),
		cmocka_unit_test(late_answers_are_credited_while_the_slot_is_there),
		cmocka_unit_test(dask_connections_are_a_class_of_their_own),
		cmocka_unit_test(a_transport_binds_by_name_and_its_loop_does_not),
	};

	return cmocka_run_group_tests_name("shim net", tests, arm, NULL);
}
