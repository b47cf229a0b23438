/* SPDX-License-Identifier: BSD-3-Clause */
/* test_http.c - real requests over loopback to the status page in our loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collector/serve/http.h"
#include "collector/serve/http_access.h"
#include "common/clock.h"
#include "common/net.h"

struct page {
	struct loop *loop;
	struct http *http;
	struct net_address address;
	pid_t parent;
	int status_calls;
	int result;
	unsigned int sleep_s;
	char answer[65536];
};

static struct auth_token token = {.text = "a token of more than sixteen bytes"};

static void on_status(void *arg, struct buf *out)
{
	((struct page *)arg)->status_calls++;
	buf_add(out, "{}", 2);
}

static void on_page(void *arg, struct buf *out)
{
	(void)arg;
	buf_add(out, "<p>", 3);
}

static int on_report(void *arg, enum http_kind kind, const char *run, struct buf *out)
{
	static const char *const names[] = {"text", "json", "page"};
	struct page *page = arg;
	char text[256];

	sleep(page->sleep_s);
	if (page->result) {
		buf_add(out, "it says why", 11);
		return page->result;
	}
	snprintf(text, sizeof(text), "%s run=%s <b>&\"x\" %s", names[kind], run ? run : "last",
		 getpid() == page->parent ? "parent" : "child");
	return buf_add(out, text, strlen(text));
}

static void page_start_as(struct page *page, const struct auth_token *with, bool open,
			  int64_t job_ms)
{
	static const struct http_text texts[] = {
		{"/", "text/html", on_page, "default-src 'self'"},
		{"/status.json", "application/json", on_status, NULL},
	};
	struct http_config config = {.token = with,
				     .texts = texts,
				     .texts_n = 2,
				     .open = open,
				     .report = on_report,
				     .arg = page,
				     .job_ms = job_ms};
	int err;

	memset(page, 0, sizeof(*page));
	page->parent = getpid();
	token.len = strlen(token.text);
	page->loop = loop_new(LOOP_AUTO);
	assert_int_equal(net_parse(&page->address, "127.0.0.1:0", 1), 0);
	config.loop = page->loop;
	config.listen_fd = net_listen(&page->address, 16);
	assert_true(config.listen_fd >= 0);
	assert_int_equal(net_local(config.listen_fd, &page->address), 0);
	page->http = http_start(&config, &err);
	assert_non_null(page->http);
}

static void page_start(struct page *page, const struct auth_token *with, int64_t job_ms)
{
	page_start_as(page, with, !with, job_ms);
}

static void page_stop(struct page *page)
{
	http_stop(page->http);
	loop_free(page->loop);
}

static int page_send(struct page *page, const char *request)
{
	int fd = net_connect(&page->address);

	assert_true(fd >= 0);
	assert_int_equal(loop_turn(page->loop, 10), 0);
	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	return fd;
}

/* The status code; the whole answer is in page->answer. */
static int page_receive(struct page *page, int fd)
{
	size_t used = 0;
	ssize_t n = -1;
	int i;

	for (i = 0; i < 600 && n; i++) {
		assert_int_equal(loop_turn(page->loop, 10), 0);
		n = recv(fd, page->answer + used, sizeof(page->answer) - 1 - used, MSG_DONTWAIT);
		used += n > 0 ? (size_t)n : 0;
	}
	page->answer[used] = '\0';
	close(fd);
	return used > 12 ? atoi(page->answer + 9) : 0;
}

static int ask(struct page *page, const char *method, const char *url, const char *headers)
{
	char request[1024];

	snprintf(request, sizeof(request),
		 "%s %s HTTP/1.1\r\nHost: localhost:1\r\nConnection: close\r\n%s\r\n", method, url,
		 headers);
	return page_receive(page, page_send(page, request));
}

static bool answered(const struct page *page, const char *text)
{
	return strstr(page->answer, text) != NULL;
}

static void pages_are_served(void **state)
{
	struct page page;

	(void)state;
	page_start(&page, NULL, 0);
	assert_int_equal(ask(&page, "GET", "/status.json", ""), 200);
	assert_true(answered(&page, "application/json") && answered(&page, "\r\n\r\n{}"));
	assert_int_equal(ask(&page, "GET", "/report.json?run=abc-1.2", ""), 200);
	assert_true(answered(&page, "\r\n\r\njson run=abc-1.2 <b>&\"x\" child"));
	assert_true(answered(&page, "Content-Security-Policy: default-src 'none'"));
	assert_int_equal(ask(&page, "GET", "/report.txt", ""), 200);
	assert_true(answered(&page, "Content-Type: text/plain"));
	assert_true(answered(&page, "\r\n\r\ntext run=last <b>&\"x\" child"));
	assert_int_equal(ask(&page, "GET", "/data.json", ""), 200);
	assert_true(answered(&page, "\r\n\r\npage run=last"));
	assert_int_equal(ask(&page, "GET", "/", ""), 200);
	assert_true(answered(&page, "\r\n\r\n<p>"));
	assert_true(answered(&page, "Content-Security-Policy: default-src 'self'\r\n"));
	assert_true(answered(&page, "X-Content-Type-Options: nosniff"));
	assert_int_equal(ask(&page, "HEAD", "/status.json", ""), 200);
	assert_false(answered(&page, "{}"));
	page_stop(&page);
}

static void wrong_requests_are_refused(void **state)
{
	struct page page;
	int calls;

	(void)state;
	page_start(&page, NULL, 0);
	assert_int_equal(ask(&page, "POST", "/status.json", "Content-Length: 0\r\n"), 405);
	assert_int_equal(ask(&page, "DELETE", "/", ""), 405);
	assert_int_equal(ask(&page, "GET", "/etc/passwd", ""), 404);
	assert_int_equal(ask(&page, "GET", "/report.json?run=../x", ""), 400);
	assert_int_equal(ask(&page, "GET", "/report.json?run=%3Cb%3E", ""), 400);
	page.result = -ENOENT;
	assert_int_equal(ask(&page, "GET", "/report.json?run=none", ""), 404);
	assert_true(answered(&page, "it says why"));
	page.result = -EIO;
	assert_int_equal(ask(&page, "GET", "/report.txt", ""), 500);
	calls = page.status_calls;
	assert_int_equal(page_receive(&page, page_send(&page, "GET /status.json HTTP/1.1\r\n"
							      "Host: evil.example\r\n"
							      "Connection: close\r\n\r\n")),
			 403);
	assert_int_equal(page.status_calls, calls);
	page_stop(&page);
}

static void elsewhere_the_token_is_needed(void **state)
{
	char line[512], *cookie, *end;
	struct page page;

	(void)state;
	page_start(&page, &token, 0);
	assert_int_equal(ask(&page, "GET", "/status.json", ""), 401);
	assert_int_equal(ask(&page, "GET", "/nothing", ""), 401);
	assert_int_equal(ask(&page, "GET", "/", "Authorization: Bearer wrong\r\n"), 401);
	assert_int_equal(ask(&page, "GET", "/", "Cookie: crema=00\r\n"), 401);
	assert_int_equal(ask(&page, "GET", "/?token=wrong", ""), 401);
	assert_int_equal(page.status_calls, 0);
	snprintf(line, sizeof(line), "Authorization: Bearer %s\r\n", token.text);
	assert_int_equal(ask(&page, "GET", "/status.json", line), 200);
	assert_int_equal(ask(&page, "GET",
			     "/report.json?run=r1&token=a+token+of+more+than+sixteen+bytes", ""),
			 303);
	assert_true(answered(&page, "Location: report.json?run=r1\r\n"));
	assert_true(answered(&page, "HttpOnly; SameSite=Strict"));
	assert_false(answered(&page, token.text));
	cookie = strstr(page.answer, "crema=");
	end = strchr(cookie, ';');
	snprintf(line, sizeof(line), "Cookie: %.*s\r\n", (int)(end - cookie), cookie);
	assert_int_equal(ask(&page, "GET", "/status.json", line), 200);
	page_stop(&page);
}

static void a_slow_report_holds_up_nobody(void **state)
{
	const char *slow =
		"GET /report.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
	struct page page;
	int fd[HTTP_JOBS], i;
	uint64_t start;

	(void)state;
	page_start(&page, NULL, 400);
	page.sleep_s = 30;
	start = clock_mono_ns();
	for (i = 0; i < HTTP_JOBS; i++)
		fd[i] = page_send(&page, slow);
	assert_int_equal(ask(&page, "GET", "/status.json", ""), 200);
	assert_int_equal(ask(&page, "GET", "/report.txt", ""), 503); /* one too many */
	assert_true(answered(&page, "busy"));
	for (i = 0; i < HTTP_JOBS; i++)
		assert_int_equal(page_receive(&page, fd[i]), 503); /* took too long */
	page.sleep_s = 0;
	assert_int_equal(ask(&page, "GET", "/report.txt", ""), 200);
	/* Stopping does not wait for a report either. */
	page.sleep_s = 30;
	fd[0] = page_send(&page, slow);
	for (i = 0; i < 5; i++)
		assert_int_equal(loop_turn(page.loop, 5), 0);
	page_stop(&page);
	close(fd[0]);
	assert_true(clock_mono_ns() - start < UINT64_C(15000000000));
}

/* As many as like see the page: its data is made once for all, and kept a while. */
static void data_is_made_once_for_all(void **state)
{
	const char *data =
		"GET /data.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
	struct page page;
	int fd[3 * HTTP_JOBS], i;

	(void)state;
	page_start(&page, NULL, 0);
	page.sleep_s = 1;
	for (i = 0; i < 3 * HTTP_JOBS; i++)
		fd[i] = page_send(&page, data);
	for (i = 0; i < 3 * HTTP_JOBS; i++) {
		assert_int_equal(page_receive(&page, fd[i]), 200);
		assert_true(answered(&page, "page run=last"));
	}
	page.result = -EIO; /* nobody sees it while the data is fresh */
	assert_int_equal(ask(&page, "GET", "/data.json", ""), 200);
	assert_int_equal(ask(&page, "GET", "/data.json?run=other", ""), 500);
	/* Whoever waits is told when we stop. */
	page.sleep_s = 30;
	for (i = 0; i < 3; i++)
		fd[i] = page_send(&page,
				  "GET /data.json?run=r2 HTTP/1.1\r\nHost: localhost\r\n\r\n");
	for (i = 0; i < 5; i++)
		assert_int_equal(loop_turn(page.loop, 5), 0);
	page_stop(&page);
	for (i = 0; i < 3; i++)
		close(fd[i]);
}

#define FOREIGN "GET %s HTTP/1.1\r\nHost: hub.example.org\r\nConnection: close\r\n%s\r\n"

static void a_foreign_name_needs_the_token(void **state)
{
	char request[512], cookie[256];
	const char *at;
	struct page page;

	(void)state;
	page_start_as(&page, &token, true, 0);
	assert_int_equal(ask(&page, "GET", "/status.json", ""), 200);
	snprintf(request, sizeof(request), FOREIGN, "/", "");
	assert_int_equal(page_receive(&page, page_send(&page, request)), 403);
	snprintf(request, sizeof(request), FOREIGN, "/?token=a+token+of+more+than+sixteen+bytes",
		 "");
	assert_int_equal(page_receive(&page, page_send(&page, request)), 303);
	/* a proxy may have taken a part of the path away, so nothing names a path from the root */
	assert_true(answered(&page, "Location: ./\r\n"));
	assert_false(answered(&page, "Path="));
	at = strstr(page.answer, "crema=");
	snprintf(cookie, sizeof(cookie), "Cookie: %.*s\r\n", (int)strcspn(at, ";"), at);
	snprintf(request, sizeof(request), FOREIGN, "/status.json", cookie);
	assert_int_equal(page_receive(&page, page_send(&page, request)), 200);
	page_stop(&page);
}

static void own_hosts_are_addresses_and_localhost(void **state)
{
	(void)state;
	assert_true(http_access_own_host("localhost"));
	assert_true(http_access_own_host("localhost:8991"));
	assert_true(http_access_own_host("127.0.0.1:8991"));
	assert_true(http_access_own_host("[::1]:8991"));
	assert_false(http_access_own_host("localhost.evil.example"));
	assert_false(http_access_own_host("evil.example:8991"));
	assert_false(http_access_own_host("[::1"));
	assert_false(http_access_own_host(""));
	assert_false(http_access_own_host(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_are_served),
		cmocka_unit_test(wrong_requests_are_refused),
		cmocka_unit_test(elsewhere_the_token_is_needed),
		cmocka_unit_test(a_slow_report_holds_up_nobody),
		cmocka_unit_test(data_is_made_once_for_all),
		cmocka_unit_test(a_foreign_name_needs_the_token),
		cmocka_unit_test(own_hosts_are_addresses_and_localhost),
	};

	return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
