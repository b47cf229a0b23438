/* SPDX-License-Identifier: BSD-3-Clause */
/* test_socket_owner.c - the users of real sockets over loopback, in both ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/net.h"
#include "common/socket_owner.h"

#define STRANGER 65533

typedef int (*asks)(const struct sockaddr *local, const struct sockaddr *remote, uid_t *uid);
static const asks ways[] = {socket_owner, socket_owner_read};

struct pair {
	int listener, client, server; /* -1: closed */
	struct sockaddr_storage from, to;
};

static void connect_pair(struct pair *pair, const char *at)
{
	struct net_address address;
	socklen_t n = sizeof(pair->from), m = sizeof(pair->to);

	assert_int_equal(net_parse(&address, at, 1), 0);
	pair->listener = net_listen(&address, 4);
	if (pair->listener < 0)
		skip(); /* no IPv6 */
	assert_int_equal(net_local(pair->listener, &address), 0);
	pair->client = net_connect(&address);
	assert_true(pair->client >= 0);
	assert_int_equal(getsockname(pair->client, (void *)&pair->from, &n), 0);
	assert_int_equal(getpeername(pair->client, (void *)&pair->to, &m), 0);
	pair->server = -1;
}

static void take(struct pair *pair)
{
	struct pollfd p = {pair->listener, POLLIN, 0};

	assert_int_equal(poll(&p, 1, 5000), 1);
	pair->server = net_accept(pair->listener, NULL, 0);
	assert_true(pair->server >= 0);
}

static void close_pair(struct pair *pair)
{
	close(pair->listener);
	close(pair->client);
	if (pair->server >= 0)
		close(pair->server);
}

static void both_ends(const char *at)
{
	struct pair pair;
	struct sockaddr *from = (void *)&pair.from, *to = (void *)&pair.to;
	uid_t uid;

	for (size_t i = 0; i < 2; i++) {
		connect_pair(&pair, at);
		assert_true(socket_is_loopback(from) && socket_is_loopback(to));
		assert_int_equal(ways[i](from, to, &(uid_t){0}), 0);
		/* not accepted yet: it is not root's, although the table lists it so */
		assert_int_equal(ways[i](to, from, &uid), -ENOENT);
		take(&pair);
		uid = ~0u;
		assert_int_equal(ways[i](to, from, &uid), 0);
		assert_int_equal(uid, geteuid());
		uid = ~0u;
		assert_int_equal(ways[i](to, NULL, &uid), 0);
		assert_int_equal(uid, geteuid());
		assert_int_equal(ways[i](from, NULL, &uid), -ENOENT);
		/* a client that has disconnected: it has no owner either */
		shutdown(pair.client, SHUT_WR);
		close(pair.client);
		pair.client = -1;
		assert_int_equal(ways[i](from, to, &uid), -ENOENT);
		close_pair(&pair);
	}
}

static time_t second_now(void)
{
	return (time_t)(clock_mono_ns() / 1000000000u);
}

static void over_ipv4(void **state)
{
	(void)state;
	both_ends("127.0.0.1:0");
}

static void over_ipv6(void **state)
{
	(void)state;
	both_ends("[::1]:0");
}

static void of_another_user(void **state)
{
	struct pair pair;
	uid_t uid;

	(void)state;
	if (geteuid()) {
		print_message("only root can be another user\n");
		skip();
	}
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(seteuid(STRANGER), 0);
		connect_pair(&pair, "127.0.0.1:0");
		assert_int_equal(seteuid(0), 0);
		take(&pair);
		assert_int_equal(ways[i]((void *)&pair.from, (void *)&pair.to, &uid), 0);
		assert_int_equal(uid, STRANGER);
		assert_int_equal(ways[i]((void *)&pair.to, NULL, &uid), 0);
		assert_int_equal(uid, STRANGER);
		assert_int_equal(ways[i]((void *)&pair.to, (void *)&pair.from, &uid), 0);
		assert_int_equal(uid, 0); /* the user who accepted it */
		close_pair(&pair);
	}
}

/* Reading the tables must not block the caller: a limited number of lookups per second, then
 * none. */
static void reads_are_limited(void **state)
{
	int answers, refused, rc, i;
	struct pair pair;
	time_t second;
	uid_t uid;

	(void)state;
	connect_pair(&pair, "127.0.0.1:0");
	do { /* until all lookups fall within one second */
		second = second_now();
		while (second_now() == second)
			usleep(1000);
		second = second_now();
		for (i = answers = refused = 0; i < OWNER_READS + 5; i++) {
			rc = socket_owner_read((void *)&pair.from, (void *)&pair.to, &uid);
			answers += !rc;
			refused += rc == -EAGAIN;
		}
	} while (second_now() != second);
	assert_int_equal(answers, OWNER_READS);
	assert_int_equal(refused, 5);
	while (second_now() == second)
		usleep(1000);
	assert_int_equal(socket_owner_read((void *)&pair.from, (void *)&pair.to, &uid), 0);
	close_pair(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(over_ipv4),
		cmocka_unit_test(over_ipv6),
		cmocka_unit_test(of_another_user),
		cmocka_unit_test(reads_are_limited),
	};

	return cmocka_run_group_tests_name("socket_owner", tests, NULL, NULL);
}
