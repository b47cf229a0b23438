/* SPDX-License-Identifier: BSD-3-Clause */
/* test_url.c - which file a request names, and that secrets are not stored with it. */
#include "harness.h"

#include <string.h>

#include "shim/count/exchange.h"
#include "shim/count/url.h"

static const char *of_id(uint32_t at)
{
	return at ? crema_shm->strings + at + 4 : "";
}

static const char *asked(const char *request)
{
	return of_id(url_of_request(sent_buffer(request, strlen(request))));
}

static const char *cleaned(const char *url)
{
	return of_id(url_id(url, strlen(url)));
}

static void requests_name_their_file(void **state)
{
	(void)state;
	assert_string_equal(
		asked("GET /a/b.root HTTP/1.1\r\nAccept: */*\r\nhOsT:  host:81\r\n\r\n"),
		"http://host:81/a/b.root");
	assert_string_equal(asked("HEAD /x HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1\r\n\r\n"),
			    "http://h/x");
	assert_string_equal(asked("GET http://far/x?y HTTP/1.1\r\nHost: proxy\r\n\r\n"),
			    "http://far/x");
}

static void what_does_not_is_not_guessed(void **state)
{
	char longer[3000];

	(void)state;
	memset(longer, 'a', sizeof(longer));
	memcpy(longer, "GET /", 5);
	memcpy(longer + sizeof(longer) - 24, " HTTP/1.1\r\nHost: h\r\n\r\n", 23);
	assert_string_equal(asked(longer), "");
	assert_string_equal(asked(""), "");
	assert_string_equal(asked("GET "), "");
	assert_string_equal(asked("GET /x HTTP/1.1\r\n\r\n"), "");
	assert_string_equal(asked("GET /x HTTP/1.1\r\nHost:"), "");
	assert_string_equal(asked("GET /x HTTP/1.1\r\nHost: cut"), "");
	assert_string_equal(asked("GET * HTTP/1.1\r\nHost: h\r\n\r\n"), "");
	assert_string_equal(asked("POST /x HTTP/1.1\r\nHost: h\r\n\r\n"), "");
	assert_string_equal(cleaned("no scheme"), "");
	assert_string_equal(cleaned("root://"), "");
}

static void secrets_are_cut_off(void **state)
{
	(void)state;
	assert_string_equal(asked("GET /x?X-Amz-Signature=1 HTTP/1.1\r\nHost: h\r\n\r\n"),
			    "http://h/x");
	assert_string_equal(cleaned("root://me:word@host:1094//f.root?authz=Bearer"),
			    "root://host:1094//f.root");
	assert_string_equal(cleaned("root://host//a@b#c"), "root://host//a@b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_name_their_file),
		cmocka_unit_test(what_does_not_is_not_guessed),
		cmocka_unit_test(secrets_are_cut_off),
	};

	return cmocka_run_group_tests_name("shim url", tests, harness_setup, NULL);
}
