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
#include <dlfcn.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "collector/web/http.h"
#include "collector/web/http_access.h"
#include "collector/emit/gzip.h"
#include "common/clock.h"
#include "common/net.h"
#include "common/proof.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

struct page {
	struct loop *loop;
	struct http *http;
	struct net_address address;
	pid_t parent;
	int status_calls;
	int result;
	size_t status_bytes;
	size_t large; /* size of a report before its line */
	bool dies;    /* ends abnormally after these */
	unsigned int sleep_s;
	char answer[65536];
};

static bool bearer; /* for pages started from now on */
static struct auth_token token = {.text = "a token of more than sixteen bytes"};

static pid_t loops;	  /* the process that runs the loop */
static int waits_forever; /* blocking waits that it began */
static size_t deflated_at_once;

static int64_t ahead_ms; /* offset of all clocks here */

/* Overrides libc's. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	static int (*real)(clockid_t, struct timespec *);
	int rc;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	rc = real(id, ts);
	ts->tv_sec += ahead_ms / 1000;
	return rc;
}

/* Overrides libc's: shows what the loop's thread waits for. */
pid_t waitpid(pid_t pid, int *status, int options)
{
	static pid_t (*real)(pid_t, int *, int);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "waitpid");
	waits_forever += getpid() == loops && !(options & WNOHANG);
	/* as for a child in the kernel that no signal reaches */
	return getpid() == loops && (options & WNOHANG) ? 0 : real(pid, status, options);
}

int __real_deflate(z_streamp z, int how);
int __wrap_deflate(z_streamp z, int how);

int __wrap_deflate(z_streamp z, int how)
{
	if (getpid() == loops && z->avail_in > deflated_at_once)
		deflated_at_once = z->avail_in;
	return __real_deflate(z, how);
}

static void on_status(void *arg, struct buf *out)
{
	struct page *page = arg;
	size_t i;

	page->status_calls++;
	buf_add(out, "{}", 2);
	for (i = 2; i < page->status_bytes; i++)
		buf_add(out, &(char){(char)(i * i >> 7)}, 1);
}

static void on_page(void *arg, struct buf *out)
{
	(void)arg;
	buf_add(out, "<p>", 3);
}

static int on_report(void *arg, enum http_kind kind, const char *run, struct sink *out)
{
	static const char *const names[] = {"text", "json", "page", "runs"};
	struct page *page = arg;
	char text[256];

	size_t i;

	sleep(page->sleep_s);
	for (i = 0; i < page->large; i += 8)
		sink_printf(out, "%07zu\n", i % 9999999);
	if (page->dies)
		_exit(0);
	if (page->result) {
		sink_puts(out, "it says why");
		return page->result;
	}
	snprintf(text, sizeof(text), "%s run=%s <b>&\"x\" %s", names[kind], run ? run : "last",
		 getpid() == page->parent ? "parent" : "child");
	sink_puts(out, text);
	return 0;
}

static void page_start_as(struct page *page, const struct auth_token *with, bool open,
			  int64_t job_ms)
{
	static const struct http_text texts[] = {
		{"/", "text/html", on_page, "default-src 'self'", true},
		{"/status.json", "application/json", on_status, NULL, false},
	};
	struct http_config config = {.token = with,
				     .texts = texts,
				     .texts_n = 2,
				     .open = open,
				     .bearer = bearer,
				     .report = on_report,
				     .arg = page,
				     .job_ms = job_ms};
	int err;

	memset(page, 0, sizeof(*page));
	page->parent = loops = getpid();
	waits_forever = 0;
	deflated_at_once = 0;
	token.len = strlen(token.text);
	page->loop = loop_new();
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

/* The Host header is the page's own, unless the headers have one. */
static const char *request_of(const struct page *page, const char *method, const char *url,
			      const char *headers)
{
	static char request[2048];
	char host[64];

	snprintf(host, sizeof(host), "Host: localhost:%u\r\n", page->address.port);
	snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\n%sConnection: close\r\n%s\r\n",
		 method, url, strstr(headers, "Host: ") ? "" : host, headers);
	return request;
}

/* Turns of a loop: a limit for hangs, far beyond what a sanitizer on a busy machine needs. */
#define PATIENCE 12000

/* Returns the status code; the whole response is in page->answer. */
static int page_receive(struct page *page, int fd)
{
	size_t used = 0;
	ssize_t n = -1;
	uint64_t limit_ns = clock_mono_ns() + UINT64_C(60000000000);

	/* A turn may be short, as a report arrives in many parts. */
	while (n && clock_mono_ns() < limit_ns) {
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
	return page_receive(page, page_send(page, request_of(page, method, url, headers)));
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
	assert_true(answered(&page, "\r\njson run=abc-1.2 <b>&\"x\" child\r\n0\r\n"));
	assert_true(answered(&page, "Content-Security-Policy: default-src 'none'"));
	assert_int_equal(ask(&page, "GET", "/report.txt", ""), 200);
	assert_true(answered(&page, "Content-Type: text/plain"));
	assert_true(answered(&page, "\r\ntext run=last <b>&\"x\" child\r\n0\r\n"));
	assert_int_equal(ask(&page, "GET", "/data.json", ""), 200);
	assert_true(answered(&page, "\r\n\r\npage run=last"));
	assert_int_equal(ask(&page, "GET", "/runs.json", ""), 200);
	assert_true(answered(&page, "\r\nruns run=last <b>&\"x\" child\r\n0\r\n"));
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
	assert_int_equal(ask(&page, "GET", "/status.json", "Host: evil.example\r\n"), 403);
	assert_int_equal(page.status_calls, calls);
	page_stop(&page);
}

/* Returns how many bytes arrive until the end; -errno if it is a reset. */
static ssize_t drain(struct page *page, int fd, char *last, size_t size)
{
	static char piece[1 << 20];
	ssize_t n = -1, sum = 0;
	size_t i;

	for (i = 0; i < 20 * PATIENCE && n; i++) {
		assert_int_equal(loop_turn(page->loop, 1), 0);
		n = recv(fd, piece, sizeof(piece), MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN) {
			sum = -errno;
			break;
		}
		if (n > 0) {
			sum += n;
			memcpy(last, piece + (n > (ssize_t)size ? n - (ssize_t)size : 0),
			       n > (ssize_t)size ? size : (size_t)n);
		}
	}
	close(fd);
	return sum;
}

static size_t resident_pages(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*s %lu", &pages), 1);
	fclose(file);
	return pages;
}

#define REPORT "GET /report.txt HTTP/1.1\r\nHost: localhost:%u\r\nConnection: close\r\n\r\n"

/* A report of any size takes no memory here, and arrives complete. */
static void reports_are_streamed(void **state)
{
	const size_t large = (SANITIZED ? 24u : 96u) << 20, seen = 8u << 20;
	char last[5], request[256];
	struct page page;
	size_t before;
	int fd, i;

	(void)state;
	page_start(&page, NULL, 0);
	page.large = large;
	before = resident_pages();
	snprintf(request, sizeof(request), REPORT, page.address.port);
	fd = page_send(&page, request);
	for (i = 0; i < 200; i++) /* the report is made, but not read */
		assert_int_equal(loop_turn(page.loop, 5), 0);
	assert_true((resident_pages() - before) * (size_t)sysconf(_SC_PAGESIZE) < seen);
	assert_true(drain(&page, fd, last, sizeof(last)) > (ssize_t)large);
	assert_memory_equal(last, "0\r\n\r\n", 5);
	page_stop(&page);
}

/* Without a last chunk or an orderly end a client cannot take a part for the whole. */
static void a_broken_report_is_a_reset(void **state)
{
	static const char *const versions[] = {"1.0", "1.1"};
	char last[5] = "", request[256];
	struct page page;
	size_t i;

	(void)state;
	for (i = 0; i < 4; i++) {
		page_start(&page, NULL, 0);
		page.large = 24u << 20;
		page.dies = i < 2;
		page.result = -EIO;
		snprintf(request, sizeof(request),
			 "GET /report.txt HTTP/%s\r\nHost: localhost:%u\r\n\r\n", versions[i % 2],
			 page.address.port);
		assert_int_equal(drain(&page, page_send(&page, request), last, sizeof(last)),
				 -ECONNRESET);
		page_stop(&page);
	}
	/* a failure before the first byte is reported without leading garbage */
	for (i = 0; i < 6; i++) {
		page_start(&page, NULL, 0);
		page.large = (size_t[]){0, 1u << 20, 24u << 20}[i % 3];
		page.dies = i < 3;
		page.result = -EIO;
		assert_int_equal(ask(&page, "GET", "/data.json", ""), 500);
		assert_true(answered(&page, i == 3 ? "\r\n\r\nit says why\n"
						   : "\r\n\r\nthe report failed\n"));
		page_stop(&page);
	}
}

/* Moves the clock by that much; returns whether the connection is still open. */
static bool is_open_after(struct page *page, int fd, int64_t ms)
{
	struct pollfd end = {.fd = fd, .events = POLLRDHUP};
	int i;

	ahead_ms += ms;
	for (i = 0; i < 20; i++)
		assert_int_equal(loop_turn(page->loop, 1), 0);
	return poll(&end, 1, 0) == 0;
}

/* The deadlines of a head and of the next request: one second before each, and after it. */
static void who_is_slow_is_closed(void **state)
{
	char request[256], piece[16384];
	struct page page;
	int fd;

	(void)state;
	page_start(&page, NULL, 0);
	snprintf(request, sizeof(request),
		 "GET /status.json HTTP/1.1\r\nHost: localhost:%u\r\n\r\n", page.address.port);
	fd = page_send(&page, "GET /status.json HTTP/1.1\r\nHost: ");
	assert_true(is_open_after(&page, fd, HTTP_HEAD_MS - 1000));
	assert_false(is_open_after(&page, fd, 2000));
	close(fd);

	fd = page_send(&page, request);
	assert_true(is_open_after(&page, fd, 0));
	assert_true(recv(fd, piece, sizeof(piece), MSG_DONTWAIT) > 0);
	assert_true(is_open_after(&page, fd, 1000)); /* the loop notices that everything was read */
	assert_true(is_open_after(&page, fd, HTTP_IDLE_MS - 1000));
	assert_false(is_open_after(&page, fd, 2000));
	close(fd);
	page_stop(&page);
	ahead_ms = 0;
}

/* The child of a killed report may never end: the loop does not wait for it. */
static void no_child_is_waited_for(void **state)
{
	struct page page;

	(void)state;
	page_start(&page, NULL, 50);
	page.sleep_s = 30;
	assert_int_equal(ask(&page, "GET", "/report.txt", ""), 503);
	assert_int_equal(ask(&page, "GET", "/data.json", ""), 503);
	page.sleep_s = 0;
	assert_int_equal(ask(&page, "GET", "/report.txt", ""), 200);
	page_stop(&page);
	assert_int_equal(waits_forever, 0);
}

static size_t inflated(const char *from, size_t n)
{
	static unsigned char to[8u << 20];
	z_stream z = {.next_in = (unsigned char *)(uintptr_t)from,
		      .avail_in = (uInt)n,
		      .next_out = to,
		      .avail_out = sizeof(to)};

	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	inflateEnd(&z);
	return z.total_out;
}

/* Joins the chunks of a response in place. */
static size_t unchunk(char *answer, size_t n)
{
	char *from = strstr(answer, "\r\n\r\n") + 4, *end;
	size_t used = 0, chunk;

	if (!strstr(answer, "Transfer-Encoding: chunked")) {
		memmove(answer, from, n - (size_t)(from - answer));
		return n - (size_t)(from - answer);
	}
	while ((size_t)(from - answer) < n && (chunk = strtoul(from, &end, 16))) {
		memmove(answer + used, end + 2, chunk);
		used += chunk;
		from = end + 2 + chunk + 2;
	}
	return used;
}

static size_t ask_packed(struct page *page, const char *url)
{
	static char answer[8u << 20];
	char request[256];
	size_t used = 0;
	ssize_t n = -1;
	int fd, i;

	snprintf(request, sizeof(request),
		 "GET %s HTTP/1.1\r\nHost: localhost:%u\r\nAccept-Encoding: gzip\r\n"
		 "Connection: close\r\n\r\n",
		 url, page->address.port);
	fd = page_send(page, request);
	for (i = 0; i < 20 * PATIENCE && n; i++) {
		assert_int_equal(loop_turn(page->loop, 1), 0);
		n = recv(fd, answer + used, sizeof(answer) - 1 - used, MSG_DONTWAIT);
		used += n > 0 ? (size_t)n : 0;
	}
	close(fd);
	answer[used] = '\0';
	assert_non_null(strstr(answer, "Content-Encoding: gzip"));
	return inflated(answer, unchunk(answer, used));
}

/* The child compresses reports; the loop's thread compresses its own responses in slices. */
static void the_loop_compresses_no_report(void **state)
{
	struct page page;

	(void)state;
	page_start(&page, NULL, 0);
	page.large = 4u << 20;
	assert_true(ask_packed(&page, "/report.json") > page.large);
	assert_true(ask_packed(&page, "/data.json") > page.large);
	assert_int_equal(deflated_at_once, 0);
	page.status_bytes = 3000001;
	assert_int_equal(ask_packed(&page, "/status.json"), 3000001);
	assert_in_range(deflated_at_once, 1, GZIP_SLICE);
	page_stop(&page);
}

/* A client that sends its request at once is served, however many silent ones came before. */
static void who_says_nothing_makes_room(void **state)
{
	int fd[3 * HTTP_CONNECTIONS];
	struct page page;
	size_t i;

	(void)state;
	page_start(&page, NULL, 0);
	for (i = 0; i < 3 * HTTP_CONNECTIONS; i++)
		fd[i] = page_send(&page, "GET / HTTP/1.1\r\nX: ");
	assert_int_equal(ask(&page, "GET", "/status.json", ""), 200);
	for (i = 0; i < 3 * HTTP_CONNECTIONS; i++)
		close(fd[i]);
	page_stop(&page);
}

/* Large responses that are not read are held up to a limit; a small one is always available. */
static void held_answers_are_bounded(void **state)
{
	char status[128];
	const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), mib = 1u << 20;
	int fd[HTTP_CONNECTIONS / 2];
	struct page page;
	size_t i, before;

	(void)state;
	page_start(&page, NULL, 0);
	page.status_bytes = SANITIZED ? mib / 4 : 4 * mib; /* to compress */
	snprintf(status, sizeof(status), "GET /status.json HTTP/1.1\r\nHost: localhost:%u\r\n\r\n",
		 page.address.port);
	before = resident_pages();
	for (i = 0; i < HTTP_CONNECTIONS / 2; i++) {
		fd[i] = page_send(&page, status);
		assert_int_equal(loop_turn(page.loop, 5), 0);
	}
	if (!SANITIZED) /* a sanitizer keeps freed memory */
		assert_true((resident_pages() - before) * page_bytes < HTTP_HELD_MAX);
	assert_int_equal(ask(&page, "GET", "/", ""), 200);
	for (i = 0; i < HTTP_CONNECTIONS / 2; i++)
		close(fd[i]);
	page_stop(&page);
}

/* The cookie of the last response, as a request header. */
static const char *cookie_of(const struct page *page)
{
	static char line[256];
	const char *at = strstr(page->answer, "Set-Cookie: ");

	assert_non_null(at);
	at += strlen("Set-Cookie: ");
	snprintf(line, sizeof(line), "Cookie: %.*s\r\n", (int)strcspn(at, ";"), at);
	return line;
}

static const char *link_of(const struct page *page, const char *before, int64_t late_s)
{
	static char url[512];
	char code[PROOF_CODE_BYTES];

	assert_int_equal(proof_code(&token, page->address.port, time(NULL) - late_s, code), 0);
	snprintf(url, sizeof(url), "%scode=%s", before, code);
	return url;
}

static void elsewhere_the_token_is_needed(void **state)
{
	char line[512], cookie[256];
	struct page page;

	(void)state;
	page_start(&page, &token, 0);
	assert_int_equal(ask(&page, "GET", "/status.json", ""), 401);
	assert_true(answered(&page, "WWW-Authenticate: Crema nonce="));
	assert_false(answered(&page, "Bearer"));
	assert_int_equal(ask(&page, "GET", "/nothing", ""), 401);
	assert_int_equal(ask(&page, "GET", "/", "Authorization: Bearer wrong\r\n"), 401);
	snprintf(line, sizeof(line), "Cookie: crema-%u=00\r\n", page.address.port);
	assert_int_equal(ask(&page, "GET", "/", line), 401);
	assert_int_equal(ask(&page, "GET", "/?token=a+token+of+more+than+sixteen+bytes", ""), 401);
	snprintf(line, sizeof(line), "Authorization: Bearer %s\r\n", token.text);
	assert_int_equal(ask(&page, "GET", "/status.json", line), 401);
	assert_int_equal(ask(&page, "GET", link_of(&page, "/status.json?", PROOF_CODE_S + 1), ""),
			 401);
	assert_int_equal(page.status_calls, 0);
	assert_int_equal(ask(&page, "GET", link_of(&page, "/report.json?run=r1&", 0), ""), 303);
	assert_true(answered(&page, "Location: report.json?run=r1\r\n"));
	assert_true(answered(&page, "HttpOnly; SameSite=Strict"));
	assert_false(answered(&page, token.text));
	snprintf(cookie, sizeof(cookie), "%s", cookie_of(&page));
	assert_int_equal(ask(&page, "GET", "/status.json", cookie), 200);
	page_stop(&page);
	bearer = true;
	page_start(&page, &token, 0);
	bearer = false;
	assert_int_equal(ask(&page, "GET", "/status.json", line), 200);
	assert_int_equal(ask(&page, "GET", "/status.json", cookie), 401); /* of another collector */
	page_stop(&page);
}

static void a_link_is_good_once(void **state)
{
	char url[512];
	struct page page;

	(void)state;
	page_start(&page, &token, 0);
	snprintf(url, sizeof(url), "%s", link_of(&page, "/?", 0));
	assert_int_equal(ask(&page, "GET", url, ""), 303);
	assert_true(answered(&page, "Location: ./\r\n"));
	assert_int_equal(ask(&page, "GET", url, ""), 401);
	assert_true(answered(&page, "used before or is too old"));
	/* from an earlier collector, from the future, for another port, changed, and truncated */
	assert_int_equal(ask(&page, "GET", link_of(&page, "/?", 5), ""), 401);
	assert_int_equal(ask(&page, "GET", link_of(&page, "/?", -PROOF_SKEW_S - 5), ""), 401);
	page.address.port++;
	snprintf(url, sizeof(url), "%s", link_of(&page, "/?", 0));
	page.address.port--;
	assert_int_equal(ask(&page, "GET", url, ""), 401);
	snprintf(url, sizeof(url), "%s", link_of(&page, "/?", 0));
	url[strlen(url) - 1] ^= 1;
	assert_int_equal(ask(&page, "GET", url, ""), 401);
	url[strlen(url) - 1] = '\0';
	assert_int_equal(ask(&page, "GET", url, ""), 401);
	/* at most 64 in use are remembered */
	for (int i = 0; i < 63; i++)
		assert_int_equal(ask(&page, "GET", link_of(&page, "/?", 0), ""), 303);
	assert_int_equal(ask(&page, "GET", link_of(&page, "/?", 0), ""), 401);
	page_stop(&page);
}

/* A persistent connection, and the first response on it. */
static int open_page(struct page *page)
{
	int i, fd = page_send(page, "GET /status.json HTTP/1.1\r\nHost: x\r\n\r\n");
	ssize_t n = -1;

	for (i = 0; i < PATIENCE && n <= 0; i++) {
		assert_int_equal(loop_turn(page->loop, 10), 0);
		n = recv(fd, page->answer, sizeof(page->answer) - 1, MSG_DONTWAIT);
	}
	assert_true(n > 0);
	page->answer[n] = '\0';
	return fd;
}

/* A request of a client that has the token. */
static int ask_with_proof(struct page *page, const char *method, const char *path, bool other_path)
{
	uint8_t server[AUTH_NONCE_BYTES], mine[AUTH_NONCE_BYTES] = {7}, mac[AUTH_MAC_BYTES];
	char text[2 * AUTH_NONCE_BYTES + 1], sum[2 * AUTH_MAC_BYTES + 1], request[1024];
	struct proof proof = {&token, method, path, server, mine};
	struct buf body = BUF_INIT;
	int status, fd = open_page(page);
	const char *at;

	at = strstr(page->answer, "Crema nonce=");
	assert_non_null(at);
	assert_true(proof_field(at, "nonce", server, sizeof(server)));
	assert_int_equal(proof_mac(&proof, mac), 0);
	proof_hex(text, mine, sizeof(mine));
	proof_hex(sum, mac, sizeof(mac));
	snprintf(request, sizeof(request),
		 "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
		 "Authorization: Crema nonce=%s, mac=%s\r\n\r\n",
		 method, other_path ? "/" : path, text, sum);
	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	status = page_receive(page, fd);
	if (status == 200) {
		/* the body is the last 2 + 48 bytes: "{}" and what authenticates it */
		const char *end = strstr(page->answer, "\r\n\r\n") + 4;

		assert_true(answered(page, "Content-Length: 50\r\n"));
		buf_add(&body, end, 50);
		assert_int_equal(proof_open(&proof, &body), 0);
		assert_int_equal(body.len, 2);
		assert_memory_equal(body.data, "{}", 2);
		buf_release(&body);
	}
	/* the same request is refused on another connection, with a nonce or without */
	assert_int_equal(page_receive(page, page_send(page, request)), 401);
	fd = open_page(page);
	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	assert_int_equal(page_receive(page, fd), 401);
	return status;
}

static void a_proof_is_answered_sealed(void **state)
{
	struct page page;

	(void)state;
	page_start(&page, &token, 0);
	assert_int_equal(ask_with_proof(&page, "GET", "/status.json", false), 200);
	assert_int_equal(ask_with_proof(&page, "GET", "/status.json", true), 401);
	assert_int_equal(ask_with_proof(&page, "GET", "/report.json", false), 401);
	page_stop(&page);
}

static void a_slow_report_holds_up_nobody(void **state)
{
	struct page page;
	int fd[HTTP_JOBS], i;
	uint64_t start;

	(void)state;
	page_start(&page, NULL, 400);
	page.sleep_s = 30;
	start = clock_mono_ns();
	for (i = 0; i < HTTP_JOBS; i++)
		fd[i] = page_send(&page, request_of(&page, "GET", "/report.txt", ""));
	assert_int_equal(ask(&page, "GET", "/status.json", ""), 200);
	assert_int_equal(ask(&page, "GET", "/report.txt", ""), 503); /* one too many */
	assert_true(answered(&page, "busy"));
	for (i = 0; i < HTTP_JOBS; i++)
		assert_int_equal(page_receive(&page, fd[i]), 503); /* took too long */
	page.sleep_s = 0;
	assert_int_equal(ask(&page, "GET", "/report.txt", ""), 200);
	/* Stopping does not wait for a report either. */
	page.sleep_s = 30;
	fd[0] = page_send(&page, request_of(&page, "GET", "/report.txt", ""));
	for (i = 0; i < 5; i++)
		assert_int_equal(loop_turn(page.loop, 5), 0);
	page_stop(&page);
	close(fd[0]);
	assert_true(clock_mono_ns() - start < UINT64_C(15000000000));
}

/* Any number of clients may view the page: its data is made once for all and cached for a while. */
static void data_is_made_once_for_all(void **state)
{
	struct page page;
	int fd[3 * HTTP_JOBS], i;

	(void)state;
	page_start(&page, NULL, 0);
	page.sleep_s = 1;
	for (i = 0; i < 3 * HTTP_JOBS; i++)
		fd[i] = page_send(&page, request_of(&page, "GET", "/data.json", ""));
	for (i = 0; i < 3 * HTTP_JOBS; i++) {
		assert_int_equal(page_receive(&page, fd[i]), 200);
		assert_true(answered(&page, "page run=last"));
	}
	page.result = -EIO; /* not visible while the data is fresh */
	assert_int_equal(ask(&page, "GET", "/data.json", ""), 200);
	assert_int_equal(ask(&page, "GET", "/data.json?run=other", ""), 500);
	/* Waiting clients get a response when the loop stops. */
	page.sleep_s = 30;
	for (i = 0; i < 3; i++)
		fd[i] = page_send(&page, request_of(&page, "GET", "/data.json?run=r2", ""));
	for (i = 0; i < 5; i++)
		assert_int_equal(loop_turn(page.loop, 5), 0);
	page_stop(&page);
	for (i = 0; i < 3; i++)
		close(fd[i]);
}

#define FOREIGN "Host: hub.example.org\r\n"

static void through_a_proxy_a_link_is_needed(void **state)
{
	static const char *const forwarded[] = {
		FOREIGN,
		"Host: localhost:1\r\n",
		"X-Forwarded-For: 10.0.0.1\r\n",
		"x-forwarded-context: /\r\n",
		"Forwarded: for=10.0.0.1\r\n",
		"Via: 1.1 proxy\r\n",
		"X-Real-IP: 10.0.0.1\r\n",
	};
	char headers[512];
	struct page page;

	(void)state;
	page_start_as(&page, &token, true, 0);
	assert_int_equal(ask(&page, "GET", "/status.json", ""), 200);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		assert_int_equal(ask(&page, "GET", "/status.json", forwarded[i]), 403);
	snprintf(headers, sizeof(headers), "Host: localhost:%u\r\nHost: localhost:%u\r\n",
		 page.address.port, page.address.port);
	assert_int_not_equal(ask(&page, "GET", "/status.json", headers), 200);
	assert_int_equal(ask(&page, "GET", link_of(&page, "/?", 0), FOREIGN), 303);
	/* a proxy may have removed a part of the path, so no link is absolute */
	assert_true(answered(&page, "Location: ./\r\n"));
	assert_false(answered(&page, "Path="));
	snprintf(headers, sizeof(headers), "%s%s", FOREIGN, cookie_of(&page));
	assert_int_equal(ask(&page, "GET", "/status.json", headers), 200);
	page_stop(&page);
}

static void own_hosts_are_loopback_and_this_port(void **state)
{
	static const char *const others[] = {"localhost.evil.example:8991",
					     "evil.example:8991",
					     "[::1",
					     "[::1]evil.com",
					     "[::1]evil.com:8991",
					     "[::1]:8991evil.com",
					     "[::1]:8991:8991",
					     "[localhost]:8991",
					     "[127.0.0.1]:8991",
					     "localhost:x.evil",
					     "localhost:8991.evil",
					     "localhost:",
					     "localhost",
					     "localhost:8992",
					     "::1",
					     "::1:8991",
					     "10.0.0.1:8991",
					     "[2001:db8::1]:8991",
					     "[::ffff:10.0.0.1]:8991",
					     "tcp://localhost:8991",
					     "dir:/",
					     "user@localhost:8991",
					     ""};

	(void)state;
	assert_true(http_access_own_host("localhost:8991", 8991));
	assert_true(http_access_own_host("LocalHost:8991", 8991));
	assert_true(http_access_own_host("127.0.0.1:8991", 8991));
	assert_true(http_access_own_host("127.0.0.2:8991", 8991));
	assert_true(http_access_own_host("[::1]:8991", 8991));
	assert_true(http_access_own_host("localhost", 80));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(http_access_own_host(others[i], 8991));
	assert_false(http_access_own_host(NULL, 8991));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_are_served),
		cmocka_unit_test(wrong_requests_are_refused),
		cmocka_unit_test(reports_are_streamed),
		cmocka_unit_test(a_broken_report_is_a_reset),
		cmocka_unit_test(who_is_slow_is_closed),
		cmocka_unit_test(no_child_is_waited_for),
		cmocka_unit_test(the_loop_compresses_no_report),
		cmocka_unit_test(who_says_nothing_makes_room),
		cmocka_unit_test(held_answers_are_bounded),
		cmocka_unit_test(elsewhere_the_token_is_needed),
		cmocka_unit_test(a_slow_report_holds_up_nobody),
		cmocka_unit_test(data_is_made_once_for_all),
		cmocka_unit_test(a_link_is_good_once),
		cmocka_unit_test(a_proof_is_answered_sealed),
		cmocka_unit_test(through_a_proxy_a_link_is_needed),
		cmocka_unit_test(own_hosts_are_loopback_and_this_port),
	};

	return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
