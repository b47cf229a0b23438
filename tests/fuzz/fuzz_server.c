/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_server.c - the server that fuzzed peers talk to. */
#include "tests/fuzz/fuzz_server.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct loop *loop;
static struct server *server;

static int append_nothing(struct framefile *file, const void *frames, size_t bytes)
{
	(void)file, (void)frames, (void)bytes;
	return 0;
}

static void start(struct server_config config)
{
	static char dir[] = "/tmp/crema-fuzz-XXXXXX";
	struct journal_config journal = {.dir = mkdtemp(dir), .append = append_nothing};
	int err;

	loop = loop_new();
	config.name = "here";
	config.linger_ms = 1;
	config.log_ms = 3600000;
	config.loop = loop;
	config.journal = journal_open(&journal, &err);
	server = config.journal ? server_new(&config) : NULL;
	if (!server || server_restore(server, dir))
		abort();
}

int fuzz_connect(const struct server_config *config)
{
	int fd[2];

	if (!server)
		start(*config);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		abort();
	server_accept(server, fd[1]);
	return fd[0];
}

void fuzz_turn(void)
{
	loop_turn(loop, 0);
}

void fuzz_close(int fd)
{
	close(fd);
	fuzz_turn();
	fuzz_turn();
}
