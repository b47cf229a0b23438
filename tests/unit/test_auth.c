/* SPDX-License-Identifier: BSD-3-Clause */
/* test_auth.c - tokens, addresses, directories. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/auth.h"
#include "common/dirs.h"
#include "common/net.h"

static char dir[] = "/tmp/crema-test-XXXXXX";

static void test_paths(void **state)
{
	char path[PATH_MAX], small[8];

	(void)state;
	setenv("HOME", "/h", 1);
	unsetenv("CREMA_TOKEN_FILE");
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("XDG_STATE_HOME");
	unsetenv("CREMA_DIR");
	assert_int_equal(auth_token_path(path, sizeof(path), NULL), 0);
	assert_string_equal(path, "/h/.config/crema/token");
	setenv("XDG_CONFIG_HOME", "/c", 1);
	assert_int_equal(auth_token_path(path, sizeof(path), NULL), 0);
	assert_string_equal(path, "/c/crema/token");
	setenv("CREMA_TOKEN_FILE", "/t", 1);
	assert_int_equal(auth_token_path(path, sizeof(path), NULL), 0);
	assert_string_equal(path, "/t");
	assert_int_equal(auth_token_path(path, sizeof(path), "/given"), 0);
	assert_string_equal(path, "/given");
	assert_int_equal(auth_token_path(small, sizeof(small), "/too/long/for/it"), -ENAMETOOLONG);
	assert_int_equal(dirs_state(path, sizeof(path), NULL), 0);
	assert_string_equal(path, "/h/.local/state/crema");
	setenv("XDG_STATE_HOME", "/s", 1);
	assert_int_equal(dirs_state(path, sizeof(path), ""), 0);
	assert_string_equal(path, "/s/crema");
	setenv("CREMA_DIR", "/d", 1);
	assert_int_equal(dirs_state(path, sizeof(path), NULL), 0);
	assert_string_equal(path, "/d");
}

static void test_token(void **state)
{
	char path[PATH_MAX], line[512];
	struct auth_token a, b;
	struct stat st;
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/sub/token", dir);
	assert_int_equal(auth_token_read(&a, path), -ENOENT);
	assert_int_equal(auth_token_make(&a, path), 0);
	assert_int_equal(a.len, 64);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(st.st_nlink, 1);
	assert_int_equal(auth_token_make(&b, path), 0);
	assert_string_equal(a.text, b.text);
	assert_int_equal(auth_token_read(&b, path), 0);
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(auth_token_read(&b, path), -EPERM);
	assert_int_equal(b.len, 0);
	assert_int_equal(auth_token_make(&b, path), -EPERM);
	assert_non_null(strstr(auth_explain(line, sizeof(line), -EPERM, path), "chmod 600"));
	assert_int_equal(chmod(path, 0600), 0);
	fd = open(path, O_WRONLY | O_TRUNC);
	assert_int_equal(write(fd, "short\n", 6), 6);
	close(fd);
	assert_int_equal(auth_token_read(&b, path), -EINVAL);
	assert_int_equal(auth_token_read(&b, dir), -EINVAL);
	assert_int_equal(auth_token_renew(&b, path), 0); /* including a file without a token */
	assert_string_not_equal(a.text, b.text);
	assert_int_equal(auth_token_renew(&a, path), 0);
	assert_string_not_equal(a.text, b.text);
	assert_int_equal(auth_token_read(&b, path), 0);
	assert_string_equal(a.text, b.text);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(auth_token_renew(&b, path), -EPERM);
	unlink(path);
	snprintf(path, sizeof(path), "%s/sub", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	rmdir(path);
}

/* RFC 4231 is for other lengths, so the test is: the same result twice, and each input matters. */
static void test_mac(void **state)
{
	struct auth_token t = {"0123456789abcdef", 16};
	uint8_t in[3][AUTH_NONCE_BYTES] = {{1}, {2}, {3}}, mac[AUTH_MAC_BYTES];
	uint8_t other[AUTH_MAC_BYTES];

	(void)state;
	assert_int_equal(auth_mac(&t, in[0], in[1], in[2], mac), 0);
	assert_int_equal(auth_mac(&t, in[0], in[1], in[2], other), 0);
	assert_true(auth_equal(mac, other, sizeof(mac)));
	for (int i = 0; i < 3; i++) {
		in[i][15] ^= 1;
		assert_int_equal(auth_mac(&t, in[0], in[1], in[2], other), 0);
		assert_false(auth_equal(mac, other, sizeof(mac)));
		in[i][15] ^= 1;
	}
	t.text[0] = 'x';
	assert_int_equal(auth_mac(&t, in[0], in[1], in[2], other), 0);
	assert_false(auth_equal(mac, other, sizeof(mac)));
}

static void test_addresses(void **state)
{
	static const char *const bad[] = {
		"",	  "host:",   "host:x", "host:65536",   "host:-1", "[::1",    "[]:1",
		"[::1]x", "ho st:1", "dir:",   "dir:relative", "a/b:1",	  "host:1:",
	};
	struct net_address a;
	char text[300];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (net_parse(&a, bad[i], 0) != -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
	assert_int_equal(net_parse(&a, "node1:8990", 0), 0);
	assert_string_equal(net_text(text, sizeof(text), &a), "node1:8990");
	assert_int_equal(net_parse(&a, "tcp://10.0.0.1", 8990), 0);
	assert_string_equal(net_text(text, sizeof(text), &a), "10.0.0.1:8990");
	assert_int_equal(net_parse(&a, "[fe80::1]:7", 8990), 0);
	assert_string_equal(net_text(text, sizeof(text), &a), "[fe80::1]:7");
	assert_int_equal(net_parse(&a, "::1", 8990), 0);
	assert_string_equal(net_text(text, sizeof(text), &a), "[::1]:8990");
	assert_int_equal(net_parse(&a, ":80", 0), 0);
	assert_string_equal(a.host, "");
	assert_int_equal(net_parse(&a, "dir:/x:y", 0), 0);
	assert_int_equal(a.kind, NET_DIR);
	assert_string_equal(net_text(text, sizeof(text), &a), "dir:/x:y");
}

static void test_sockets(void **state)
{
	struct net_address a, local;
	struct stream s, t;
	char peer[64], byte = 0;
	int listener, c, d = -EAGAIN;

	(void)state;
	assert_int_equal(net_parse(&a, "127.0.0.1:0", 0), 0);
	listener = net_listen(&a, 4);
	assert_true(listener >= 0);
	assert_int_equal(net_accept(listener, peer, sizeof(peer)), -EAGAIN);
	assert_int_equal(net_local(listener, &local), 0);
	assert_true(local.port != 0);
	assert_int_equal(net_listen(&local, 4), -EADDRINUSE);
	c = net_connect(&local);
	assert_true(c >= 0);
	for (int i = 0; i < 1000 && d == -EAGAIN; i++) {
		d = net_accept(listener, peer, sizeof(peer));
		usleep(1000);
	}
	assert_true(d >= 0);
	assert_int_equal(net_connected(c), 0);
	stream_plain(&s, c);
	stream_plain(&t, d);
	assert_int_equal(stream_read(&t, &byte, 1), -EAGAIN);
	assert_int_equal(stream_write(&s, "x", 1), 1);
	usleep(10000);
	assert_int_equal(stream_read(&t, &byte, 1), 1);
	assert_int_equal(byte, 'x');
	stream_close(&s);
	stream_close(&s);
	usleep(10000);
	assert_int_equal(stream_read(&t, &byte, 1), 0);
	stream_close(&t);
	assert_int_equal(stream_read(&t, &byte, 1), -ENOTCONN);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),	cmocka_unit_test(test_token),
		cmocka_unit_test(test_mac),	cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_sockets),
	};
	int rc;

	if (!mkdtemp(dir))
		return 1;
	rc = cmocka_run_group_tests_name("auth", tests, NULL, NULL);
	rmdir(dir);
	return rc;
}
