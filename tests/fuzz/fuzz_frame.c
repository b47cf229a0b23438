/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_frame.c - a peer of the collector that sends any bytes: the real server on a socketpair,
 * with a journal that stores nothing. No token is required, so that the code after that is
 * reached. */
#include <sys/socket.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const struct timeval brief = {.tv_usec = 1};
	char answer[4096];
	int fd = fuzz_connect(&(struct server_config){.insecure = true, .old_agents = true});

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &brief, sizeof(brief));
	while (n) {
		ssize_t done = send(fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		fuzz_turn();
		if (recv(fd, answer, sizeof(answer), MSG_DONTWAIT) == 0)
			break;
		if (done > 0) {
			data += done;
			n -= (size_t)done;
		}
	}
	fuzz_turn();
	fuzz_close(fd);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned int seed)
{
	return fuzz_mutate_frames(data, n, most, seed);
}
