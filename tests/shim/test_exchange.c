/* SPDX-License-Identifier: BSD-3-Clause */
/* test_exchange.c - what counts as one request on a connection, when it is counted, and what does
 * not count. */
#include "harness.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "shim/count/http2.h"
#include "shim/count/net.h"
#include "shim/count/task.h"

#define GET "GET /a HTTP/1.1\r\n\r\n"

static int client, server;
static char address[64];

static void connect_to(int family)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} a;
	socklen_t size = sizeof(a);
	int listener = socket(family, SOCK_STREAM, 0);

	memset(&a, 0, sizeof(a));
	a.any.sa_family = (sa_family_t)family;
	if (family == AF_INET)
		a.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		a.v6.sin6_addr = in6addr_loopback;
	assert_int_equal(bind(listener, &a.any, family == AF_INET ? sizeof(a.v4) : sizeof(a.v6)),
			 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, &a.any, &size), 0);
	client = socket(family, SOCK_STREAM, 0);
	assert_int_equal(connect(client, &a.any, size), 0);
	server = accept(listener, NULL, NULL);
	assert_true(server >= 0);
	close(listener);
	snprintf(address, sizeof(address), "%s:%d", family == AF_INET ? "127.0.0.1" : "[::1]",
		 ntohs(a.v4.sin_port));
}

static void hang_up(void)
{
	close(client);
	close(server);
}

static void say(const void *text, size_t n)
{
	char buf[4096];

	assert_int_equal(send(client, text, n, 0), (ssize_t)n);
	assert_int_equal(recv(server, buf, n, MSG_WAITALL), (ssize_t)n);
}

static void hear(size_t n)
{
	char buf[4096] = "HTTP/1.1 200 OK";

	assert_int_equal(send(server, buf, n, 0), (ssize_t)n);
	assert_int_equal(recv(client, buf, n, MSG_WAITALL), (ssize_t)n);
}

/* A record of a type with n bytes in it, followed by others until n is 0. */
static void say_records(const int (*r)[2])
{
	char buf[4096] = {0};
	size_t at = 0;

	for (; (*r)[1]; r++) {
		const char header[5] = {(char)(*r)[0], 3, 3, (char)((*r)[1] >> 8), (char)(*r)[1]};

		memcpy(buf + at, header, 5);
		at += 5 + (size_t)(*r)[1];
	}
	say(buf, at);
}
#define SAY(...) say_records((const int[][2]){__VA_ARGS__, {0, 0}})

static const struct crema_server *row(const char *scheme)
{
	const struct crema_server *s = NULL;

	for (unsigned int i = 0; i < CREMA_SHM_SERVERS; i++) {
		if (crema_shm->server[i].state != 2 ||
		    strcmp(arena_text(crema_shm->server[i].address), address))
			continue;
		assert_null(s);
		s = &crema_shm->server[i];
		assert_string_equal(arena_text(s->scheme), scheme);
	}
	return s;
}

static void counted(const char *scheme, uint64_t requests, uint64_t failed, uint64_t bytes)
{
	const struct crema_server *s = row(scheme);

	if (!requests) {
		assert_null(s);
		return;
	}
	assert_non_null(s);
	assert_int_equal(s->requests, requests);
	assert_int_equal(s->failed, failed);
	assert_int_equal(s->read_bytes, bytes);
}

static void sleep_ms(long ms)
{
	struct timespec t = {0, ms * 1000000};

	nanosleep(&t, NULL);
}

static void a_request_has_many_sends_and_many_answers(void **state)
{
	struct harness_task h = harness_begin();
	struct iovec v[3] = {{NULL, 0}, {(char[]){GET}, strlen(GET)}, {(char[]){"x"}, 1}};

	(void)state;
	connect_to(AF_INET);
	say("POST /a HTTP/1.1\r\n\r\n", 20);
	say("a body", 6);
	hear(25); /* 100 Continue */
	say("the rest of it", 14);
	hear(100);
	hear(200);
	counted("http", 0, 0, 0);
	assert_int_equal(writev(client, v, 3), (ssize_t)strlen(GET) + 1);
	counted("http", 1, 0, 325);
	hear(50);
	hang_up();
	counted("http", 2, 0, 375);
	harness_end(&h);
	harness_free(&h);
}

static void the_time_is_from_the_first_send_to_the_last_receive(void **state)
{
	struct harness_task h = harness_begin();
	uint64_t most = 0, from;

	(void)state;
	connect_to(AF_INET);
	for (int i = 0; i < 2; i++) {
		from = harness_now_ns();
		say(GET, strlen(GET));
		sleep_ms(20);
		hear(10);
		sleep_ms(20);
		hear(10);
		most += harness_now_ns() - from;
		sleep_ms(100);
	}
	hang_up();
	counted("http", 2, 0, 40);
	assert_in_range(row("http")->latency_sum_ns, 80000000, most + most / 100);
	assert_in_range(row("http")->latency_max_ns, 40000000, most);
	harness_end(&h);
	harness_free(&h);
}

static void no_answer_is_a_failure(void **state)
{
	struct harness_task h = harness_begin();

	(void)state;
	connect_to(AF_INET6);
	say(GET, strlen(GET));
	hear(10);
	say(GET, strlen(GET));
	sleep_ms(5);
	hang_up();
	counted("http", 2, 1, 10);
	assert_true(row("http")->latency_max_ns >= 5000000);
	harness_end(&h);
	harness_free(&h);
}

static void a_tasks_end_counts_what_is_answered(void **state)
{
	struct harness_task a = harness_begin(), b;

	(void)state;
	connect_to(AF_INET);
	task_slot(a.owner)->span = arena_id("span", 4);
	say(GET, strlen(GET));
	hear(10);
	harness_end(&a);
	counted("http", 1, 0, 10);
	assert_int_equal(row("http")->span, arena_id("span", 4));
	hear(7); /* unattributed */
	say(GET, strlen(GET));
	hear(9);
	b = harness_begin();
	counted("http", 1, 0, 10);
	harness_end(&b);
	hang_up();
	counted("http", 1, 0, 10);
	harness_free(&a);
	harness_free(&b);
}

static void only_data_is_a_request_under_tls(void **state)
{
	struct harness_task h = harness_begin();

	(void)state;
	connect_to(AF_INET);
	SAY({0x16, 512});
	hear(1500);
	SAY({0x14, 1}, {0x17, 53});
	SAY({0x17, 200});
	hear(300);
	SAY({0x17, 22}); /* a change of keys */
	counted("https", 0, 0, 0);
	SAY({0x17, 100});
	SAY({0x17, 30});
	hear(40);
	SAY({0x17, 19}); /* an alert */
	hang_up();
	counted("https", 2, 0, 340);

	/* the first request together with the end of the handshake */
	connect_to(AF_INET);
	SAY({0x16, 512});
	hear(1500);
	SAY({0x14, 1}, {0x17, 69}, {0x17, 150});
	hear(300);
	SAY({0x17, 150});
	hear(20);
	hang_up();
	counted("https", 2, 0, 320);

	/* 1.2, resumed */
	connect_to(AF_INET);
	SAY({0x16, 200});
	hear(100);
	SAY({0x14, 1}, {0x16, 40});
	SAY({0x17, 53});
	hear(10);
	SAY({0x15, 26});
	hang_up();
	counted("https", 1, 0, 10);
	connect_to(AF_INET);
	SAY({0x16, 200});
	hear(100);
	SAY({0x14, 1}, {0x16, 40}, {0x17, 53});
	hear(10);
	SAY({0x15, 26});
	hang_up();
	counted("https", 1, 0, 10);
	harness_end(&h);
	harness_free(&h);
}

static void a_second_hello_is_answered_by_data_that_is_no_request(void **state)
{
	struct harness_task h = harness_begin();

	(void)state;
	connect_to(AF_INET);
	SAY({0x16, 512});
	hear(99);
	SAY({0x14, 1}, {0x16, 512});
	hear(1500);
	SAY({0x17, 69});
	hear(250); /* tickets */
	SAY({0x17, 69});
	hear(20);
	hang_up();
	counted("https", 1, 0, 20);
	harness_end(&h);
	harness_free(&h);
}

/* The end of the server's handshake and its tickets arrive before any request. */
static void tickets_are_no_answer(void **state)
{
	struct harness_task h = harness_begin();

	(void)state;
	for (int i = 0; i < 3; i++) {
		connect_to(AF_INET);
		SAY({0x16, 512});
		hear(1500);
		if (i == 0)
			SAY({0x14, 1}, {0x17, 53});
		else if (i == 1)
			SAY({0x14, 1}, {0x17, 69});
		else
			SAY({0x14, 1}, {0x16, 40});
		hear(250);
		SAY({0x17, 200});
		hear(300);
		hang_up();
		counted("https", 1, 0, 300);
	}
	harness_end(&h);
	harness_free(&h);
}

static void other_protocols_are_told_by_their_turns(void **state)
{
	struct harness_task h = harness_begin();

	(void)state;
	connect_to(AF_INET);
	for (int i = 0; i < 3; i++) {
		say("*1\r\n", 4);
		say("PING", 4);
		hear(7);
	}
	hang_up();
	counted("tcp", 3, 0, 21);
	harness_end(&h);
	harness_free(&h);
}

/* A hello that offers these protocols: a list of names with their lengths. Returns its bytes. */
static size_t hello(char *out, const char *protocols)
{
	size_t n = strlen(protocols), at = 0;
	const char before[] = {0, 10, 0, 4, 0, 2, 0, 29}; /* another extension: the groups */

	memset(out, 0, 300);
	memcpy(out, "\x16\3\1", 3);
	out[5] = 1;		   /* of a client */
	out[9] = out[10] = 3;	   /* version; then 32 random bytes */
	memset(out + 11, 'h', 32); /* which look like anything */
	at = 43;
	out[at++] = 3; /* session */
	at += 3;
	out[at + 1] = 4; /* ciphers */
	at += 6;
	out[at++] = 1; /* compression */
	at += 1;
	out[at + 1] = (char)(sizeof(before) + (n ? 6 + n : 0));
	at += 2;
	memcpy(out + at, before, sizeof(before));
	at += sizeof(before);
	if (n) {
		const char head[] = {0, 16, 0, (char)(n + 2), 0, (char)n};

		memcpy(out + at, head, sizeof(head));
		memcpy(out + at + sizeof(head), protocols, n);
		at += sizeof(head) + n;
	}
	out[8] = (char)(at - 9);
	out[4] = (char)(at - 5);
	return at;
}

static void hellos(void **state)
{
	static const struct {
		const char *protocols;
		int only_h2;
	} cases[] = {{"\2h2", 1},
		     {"\10grpc-exp\2h2", 1},
		     {"\2h2\10http/1.1", 0},
		     {"\10http/1.1\2h2", 0},
		     {"\2h2\10http/1.0", 0},
		     {"\10http/1.1", 0},
		     {"\3h2c", 0},
		     {"\2h3", 0},
		     {"\4h2", 0}, /* longer than it is */
		     {"", 0}};
	char *whole = malloc(300), *part;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t n = hello(whole, cases[i].protocols);

		assert_int_equal(http2_begins(sent_buffer(whole, n)), cases[i].only_h2);
		/* in exactly as much memory, so that a sanitizer sees what is read beyond it */
		for (size_t cut = 0; cut < n; cut++) {
			part = malloc(cut ? cut : 1);
			memcpy(part, whole, cut);
			assert_int_equal(http2_begins(sent_buffer(part, cut)), 0);
			free(part);
		}
		for (size_t at = 5; at < n; at++) { /* lengths that are not true */
			part = malloc(n);
			memcpy(part, whole, n);
			part[at] = (char)0xff;
			(void)http2_begins(sent_buffer(part, n));
			free(part);
		}
	}
	free(whole);
}

/* The first bytes come from a thread without a task, as gRPC's do. */
static void http2_of_any_client(void **state)
{
	char first[300] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	uint64_t before;

	(void)state;
	for (int tls = 0; tls < 2; tls++) {
		size_t n = tls ? hello(first, "\2h2") : 24;
		struct harness_task h;

		before = crema_shm->totals.shared_network_write_bytes;
		connect_to(AF_INET);
		say(first, n);
		h = harness_begin();
		say("request", 7);
		hear(20);
		say("another", 7);
		hang_up();
		harness_end(&h);
		counted("", 0, 0, 0);
		assert_int_equal(crema_shm->totals.shared_network_write_bytes - before, n + 14);
		/* what the server, in the same task, received, but not the client */
		assert_int_equal(task_slot(h.owner)->own.count[CREMA_C_network_read_bytes], 14);
		assert_int_not_equal(
			task_slot(h.owner)->count_unknown & CREMA_COUNT_BIT(network_read_bytes), 0);
		harness_free(&h);
	}
}

static void some_connections_have_no_requests(void **state)
{
	struct harness_task h = harness_begin();

	(void)state;
	for (int i = 0; i < 4; i++) {
		connect_to(AF_INET);
		if (i == 0)
			net_mark_comm(client);
		else if (i == 1)
			net_mark_shared(client);
		say(i == 2 ? "PRI * HTTP/2.0\r\n" : GET, 16);
		hear(20);
		if (i == 3)
			net_mark_shared(client); /* late */
		say(GET, 16);
		hang_up();
		counted("", 0, 0, 0);
	}
	/* and this process as the server, also in a task */
	connect_to(AF_INET);
	assert_int_equal(send(server, GET, 16, 0), 16);
	hang_up();
	for (unsigned int i = 0; i < CREMA_SHM_SERVERS; i++)
		if (crema_shm->server[i].state)
			assert_int_equal(
				crema_shm->server[i].failed,
				!strncmp(arena_text(crema_shm->server[i].address), "[", 1));
	harness_end(&h);
	harness_free(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_has_many_sends_and_many_answers),
		cmocka_unit_test(the_time_is_from_the_first_send_to_the_last_receive),
		cmocka_unit_test(no_answer_is_a_failure),
		cmocka_unit_test(a_tasks_end_counts_what_is_answered),
		cmocka_unit_test(only_data_is_a_request_under_tls),
		cmocka_unit_test(a_second_hello_is_answered_by_data_that_is_no_request),
		cmocka_unit_test(tickets_are_no_answer),
		cmocka_unit_test(other_protocols_are_told_by_their_turns),
		cmocka_unit_test(hellos),
		cmocka_unit_test(http2_of_any_client),
		cmocka_unit_test(some_connections_have_no_requests),
	};

	return cmocka_run_group_tests_name("shim exchange", tests, harness_setup, NULL);
}
