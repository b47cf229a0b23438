/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_native.c - requests of threads that the interpreter did not start: any task that runs may
 * have asked, so its network bytes are unknown. The interpreter's threads are those that run
 * interpreters_thread() here.
 */
#include "harness.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim/count/net.h"
#include "shim/count/xrootd.h"

static int client, server;

struct words {
	int fd;
	const char *at;
	size_t bytes;
};

static void *native_thread(void *arg)
{
	const struct words *w = arg;

	assert_int_equal(send(w->fd, w->at, w->bytes, 0), (ssize_t)w->bytes);
	return NULL;
}

static void *interpreters_thread(void *arg)
{
	return native_thread(arg);
}

static void *library_thread(void *arg)
{
	return native_thread(arg);
}

static void sends(void *(*thread)(void *), struct words w)
{
	pthread_t id;

	assert_int_equal(pthread_create(&id, NULL, thread, &w), 0);
	pthread_join(id, NULL);
}

/* The unknown network counts of a task during which a new connection is used so. */
static uint64_t unknown_of(void *(*thread)(void *), int from_server, const char *at, size_t bytes)
{
	struct harness_task h = harness_begin();
	uint64_t unknown;

	harness_connect(&client, &server);
	sends(thread, (struct words){from_server ? server : client, at, bytes});
	unknown = harness_end(&h)->count_unknown & CREMA_NETWORK_COUNTS;
	harness_free(&h);
	close(client);
	close(server);
	return unknown;
}

#define UNKNOWN_OF(thread, from_server, text)                                                      \
	unknown_of(thread, from_server, text, sizeof(text) - 1)

static const char http[] = "GET /a HTTP/1.1\r\nHost: b\r\n\r\n";
static const char http2[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
static const char greeting[44] = {[15] = 4, [18] = 2012 >> 8, [19] = (char)(2012 & 255)};
/* The stream's number, the code, the handle, the offset and the length; 8 bytes more follow. */
#define CODE(n) (n) >> 8, (char)((n)&255)
static const char read_request[32] = {0, 1, CODE(3013), [14] = 1, 2, [18] = 0x30, [23] = 8};
/* For each chunk: the handle, the length and the offset. */
static const char vector_request[24 + 32] = {0, 1, CODE(3025), [23] = 32, [30] = 0x30, [38] = 1, 2};
static const char write_request[24] = {0, 1, CODE(3019), [14] = 1, 2, [21] = 1};
static const char stat_request[24 + 6] = {0, 1, CODE(3017), [23] = 6};

static void librarys_requests_are_anyones(void **state)
{
	(void)state;
	assert_int_equal(UNKNOWN_OF(library_thread, 0, http), CREMA_NETWORK_COUNTS);
	assert_int_equal(UNKNOWN_OF(library_thread, 0, http2), CREMA_NETWORK_COUNTS);
	assert_int_equal(UNKNOWN_OF(library_thread, 0, "\x16\x03\x01 something under TLS"),
			 CREMA_NETWORK_COUNTS);
	assert_int_equal(UNKNOWN_OF(library_thread, 0, "any other protocol, with 24 bytes"),
			 CREMA_NETWORK_COUNTS);
}

static void others_are_not(void **state)
{
	(void)state;
	assert_int_equal(UNKNOWN_OF(interpreters_thread, 0, http), 0);
	assert_int_equal(UNKNOWN_OF(interpreters_thread, 0, http2), 0);
	/* a server of this process */
	assert_int_equal(UNKNOWN_OF(library_thread, 1, http), 0);
	/* XRootD's client, also if it connected earlier */
	assert_int_equal(unknown_of(library_thread, 0, greeting, sizeof(greeting)), 0);
	assert_int_equal(unknown_of(library_thread, 0, greeting, 20), 0);
	assert_int_equal(unknown_of(library_thread, 0, stat_request, sizeof(stat_request)), 0);
}

#define READ_OF(message) unknown_of(library_thread, 0, message, sizeof(message))

static void xrootds_requests_for_data_are_anyones_unless_announced(void **state)
{
	uint32_t all;

	(void)state;
	assert_int_equal(READ_OF(read_request), CREMA_NETWORK_COUNTS);
	all = xrootd_announce(XROOTD_READ, 0x102, 0x3000);
	assert_int_equal(READ_OF(read_request), 0);
	assert_int_equal(READ_OF(read_request), 0); /* sent again */
	assert_int_equal(READ_OF(vector_request), CREMA_NETWORK_COUNTS);
	assert_int_equal(READ_OF(write_request), CREMA_NETWORK_COUNTS);
	xrootd_answered(all);
	assert_int_equal(READ_OF(read_request), CREMA_NETWORK_COUNTS);
	/* another size, another position, the same of a vector */
	all = xrootd_announce(XROOTD_READ, 0x102, 0x3001);
	assert_int_equal(READ_OF(read_request), CREMA_NETWORK_COUNTS);
	xrootd_answered(all);
	all = xrootd_announce(XROOTD_READ, 0x103, 0x3000);
	assert_int_equal(READ_OF(read_request), CREMA_NETWORK_COUNTS);
	xrootd_answered(all);
	all = xrootd_announce(XROOTD_VECTOR, 0x102, 0x3000);
	assert_int_equal(READ_OF(read_request), CREMA_NETWORK_COUNTS);
	assert_int_equal(READ_OF(vector_request), 0);
	xrootd_answered(all);
	/* to the end of the file, and what the client chooses */
	all = xrootd_announce(XROOTD_READ, 0x102, 0);
	assert_int_equal(READ_OF(read_request), 0);
	xrootd_answered(all);
	all = xrootd_announce(XROOTD_READS, 0, 0);
	assert_int_equal(READ_OF(read_request) | READ_OF(vector_request), 0);
	assert_int_equal(READ_OF(write_request), CREMA_NETWORK_COUNTS);
	xrootd_answered(all);
	all = xrootd_announce(XROOTD_WRITES, 0, 0);
	assert_int_equal(READ_OF(write_request), 0);
	assert_int_equal(READ_OF(read_request), CREMA_NETWORK_COUNTS);
	xrootd_answered(all);
	all = xrootd_announce(XROOTD_COPIES, 0, 0);
	assert_int_equal(READ_OF(write_request) | READ_OF(vector_request), 0);
	xrootd_answered(all);
	assert_true(xrootd_is_idle());
}

/* What a forked child's parent had announced does not stay, and its end is not one of the child's.
 */
static void a_fork_forgets_what_was_announced(void **state)
{
	uint32_t old = xrootd_announce(XROOTD_WRITES, 0, 0), new;

	(void)state;
	xrootd_forget();
	assert_true(xrootd_is_idle());
	assert_int_equal(READ_OF(write_request), CREMA_NETWORK_COUNTS);
	new = xrootd_announce(XROOTD_WRITES, 0, 0);
	xrootd_answered(old);
	assert_int_equal(READ_OF(write_request), 0);
	xrootd_answered(new);
	assert_true(xrootd_is_idle());
}

static void *receives(void *arg)
{
	const struct words *w = arg;
	char buf[8192];

	for (size_t got = 0; got < w->bytes;)
		got += (size_t)recv(w->fd, buf, sizeof(buf), 0);
	return NULL;
}

/* The unknown counts of a task during which that many bytes arrive on the connection. */
static uint64_t unknown_of_answer(size_t bytes)
{
	static const char zeros[8192];
	struct harness_task h = harness_begin();
	uint64_t unknown;
	pthread_t id;

	assert_int_equal(send(server, zeros, bytes, 0), (ssize_t)bytes);
	assert_int_equal(pthread_create(&id, NULL, receives, &(struct words){client, NULL, bytes}),
			 0);
	pthread_join(id, NULL);
	unknown = harness_end(&h)->count_unknown & CREMA_NETWORK_COUNTS;
	harness_free(&h);
	return unknown;
}

/* Its requests are encrypted. */
static void under_tls_bytes_that_nothing_announced(void **state)
{
	static const char hello[] = "\x16\x03\x01 a hello";
	uint32_t other;

	(void)state;
	harness_connect(&client, &server);
	sends(library_thread, (struct words){client, greeting, sizeof(greeting)});
	assert_int_equal(unknown_of_answer(8000), 0); /* plain: the requests show it */
	sends(library_thread, (struct words){client, hello, sizeof(hello) - 1});
	sends(library_thread, (struct words){client, read_request, sizeof(read_request)});
	other = xrootd_announce(XROOTD_OTHER, 0, 0);
	assert_int_equal(unknown_of_answer(8000), 0);
	xrootd_answered(other);
	assert_int_equal(unknown_of_answer(3000), 0);
	other = xrootd_announce(XROOTD_OTHER, 0, 0);
	assert_int_equal(unknown_of_answer(1), 0);
	xrootd_answered(other);
	assert_int_equal(unknown_of_answer(3000), 0);
	assert_int_equal(unknown_of_answer(3000), CREMA_NETWORK_COUNTS);
	close(client);
	close(server);
}

static void later_tasks_too(void **state)
{
	struct harness_task first, second;
	struct words w = {0, http, sizeof(http) - 1};

	(void)state;
	harness_connect(&client, &server);
	w.fd = client;
	first = harness_begin();
	sends(library_thread, w);
	assert_int_equal(harness_end(&first)->count_unknown & CREMA_NETWORK_COUNTS,
			 CREMA_NETWORK_COUNTS);
	harness_free(&first);
	second = harness_begin();
	assert_int_equal(task_slot(second.owner)->count_unknown & CREMA_NETWORK_COUNTS, 0);
	sends(library_thread, w);
	assert_int_equal(harness_end(&second)->count_unknown & CREMA_NETWORK_COUNTS,
			 CREMA_NETWORK_COUNTS);
	harness_free(&second);
	close(client);
	close(server);
}

/* Last: it is not undone. Of its calls is known which tasks make them. */
static void grpcs_are_not(void **state)
{
	(void)state;
	net_grpc_tells();
	assert_int_equal(UNKNOWN_OF(library_thread, 0, http2), 0);
	assert_int_equal(UNKNOWN_OF(library_thread, 0, http), CREMA_NETWORK_COUNTS);
}

static int setup(void **state)
{
	thread_python_from = (uintptr_t)interpreters_thread;
	thread_python_to = thread_python_from + 1;
	return harness_setup(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(librarys_requests_are_anyones),
		cmocka_unit_test(others_are_not),
		cmocka_unit_test(xrootds_requests_for_data_are_anyones_unless_announced),
		cmocka_unit_test(a_fork_forgets_what_was_announced),
		cmocka_unit_test(under_tls_bytes_that_nothing_announced),
		cmocka_unit_test(later_tasks_too),
		cmocka_unit_test(grpcs_are_not),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
