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
/* A read of 16 bytes: the stream's number, 3013, the handle, the offset and the length. */
static const char read_request[24] = {0, 1, 3013 >> 8, (char)(3013 & 255)};

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
	assert_int_equal(unknown_of(library_thread, 0, read_request, sizeof(read_request)), 0);
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
		cmocka_unit_test(later_tasks_too),
		cmocka_unit_test(grpcs_are_not),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
