/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_http.c - a client of the status page that sends any bytes. The first byte determines whether
 * a token is required. No report is made, as that would be a separate process. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collector/web/http.h"
#include "common/net.h"
#include "tests/fuzz/fuzz.h"

static struct site {
	struct net_address address;
	struct loop *loop;
	struct http *http;
} sites[2];

static void on_text(void *arg, struct buf *out)
{
	(void)arg;
	buf_add(out, "{}", 2);
}

static int on_report(void *arg, enum http_kind kind, const char *run, struct sink *out)
{
	(void)arg, (void)kind, (void)run, (void)out;
	return -ENOENT;
}

static void start(struct site *site, const struct auth_token *token)
{
	static const struct http_text texts[] = {
		{"/status.json", "application/json", on_text, NULL, false}};
	struct http_config config = {
		.token = token, .open = !token, .texts = texts, .texts_n = 1, .report = on_report};
	int err;

	site->loop = loop_new();
	net_parse(&site->address, "127.0.0.1:0", 1);
	config.loop = site->loop;
	config.listen_fd = net_listen(&site->address, 16);
	if (config.listen_fd < 0 || net_local(config.listen_fd, &site->address))
		abort();
	site->http = http_start(&config, &err);
	if (!site->http)
		abort();
}

static void ask(struct site *site, const uint8_t *data, size_t n)
{
	static const struct linger at_once = {.l_onoff = 1};
	char answer[4096];
	int fd = net_connect(&site->address);

	if (fd < 0)
		abort();
	loop_turn(site->loop, 0);
	send(fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	shutdown(fd, SHUT_WR);
	for (int i = 0; i < 6; i++) {
		loop_turn(site->loop, 0);
		if (recv(fd, answer, sizeof(answer), MSG_DONTWAIT) == 0)
			break;
	}
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(fd);
	loop_turn(site->loop, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct auth_token token = {.text = "0123456789abcdef0123456789abcdef"};

	if (!sites[0].http) {
		token.len = strlen(token.text);
		start(&sites[0], NULL);
		start(&sites[1], &token);
	}
	/* reports fork */
	if (n && !memmem(data, n, "report", 6))
		ask(&sites[data[0] & 1], data + 1, n - 1);
	return 0;
}
