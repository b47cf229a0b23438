/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_frame.c - a peer of the collector that sends any bytes: the real server on a socketpair, its
 * journal on nothing. No token is asked for, so that what comes after it is reached. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collector/serve/server.h"
#include "common/log.h"
#include "tests/fuzz/fuzz.h"

static struct loop *loop;
static struct server *server;

static int append_nothing(struct framefile *file, const void *frames, size_t bytes)
{
	(void)file, (void)frames, (void)bytes;
	return 0;
}

static void start(void)
{
	static char dir[] = "/tmp/crema-fuzz-XXXXXX";
	struct journal_config journal = {.dir = mkdtemp(dir), .append = append_nothing};
	struct server_config config = {
		.name = "here", .linger_ms = 1, .log_ms = 3600000, .insecure = true, .old_agents = true};
	int err;

	loop = loop_new();
	config.loop = loop;
	config.journal = journal_open(&journal, &err);
	server = config.journal ? server_new(&config) : NULL;
	if (!server || server_restore(server, dir))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const struct timeval brief = {.tv_usec = 1};
	char answer[4096];
	int fd[2];

	if (!server)
		start();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		abort();
	setsockopt(fd[0], SOL_SOCKET, SO_SNDTIMEO, &brief, sizeof(brief));
	server_accept(server, fd[1]);
	while (n) {
		ssize_t done = send(fd[0], data, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		loop_turn(loop, 0);
		if (recv(fd[0], answer, sizeof(answer), MSG_DONTWAIT) == 0)
			break;
		if (done > 0) {
			data += done;
			n -= (size_t)done;
		}
	}
	loop_turn(loop, 0);
	close(fd[0]);
	loop_turn(loop, 0);
	loop_turn(loop, 0);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned int seed)
{
	return fuzz_mutate_frames(data, n, most, seed);
}
