/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_sealed.c - a peer of the collector after the handshake: it has the token and seals any
 * bytes, or sends them unsealed. Input: pieces with a length of two bytes, little-endian, and that
 * many bytes; the length's highest bit: not sealed. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/session.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_server.h"

static const struct auth_token token = {"a token of more than sixteen bytes", 34};
static const uint8_t worker[CREMA_WORKER_ID_BYTES] = "fuzzed-worker-0";
/* The next frame of the handshake, as a map. */
static void receive(struct session *session, int fd, struct unpack *map, uint8_t *bytes,
		    size_t room)
{
	struct frame frame;
	ssize_t n = -1;

	for (int i = 0; i < 100 && n <= 0; i++) {
		fuzz_turn();
		n = recv(fd, bytes, room, MSG_DONTWAIT);
	}
	if (n <= 0 || session_frame(session, &frame, bytes, (size_t)n) != n ||
	    unpack_open(map, frame.stored, frame.head.raw_bytes))
		abort();
}

static void push(int fd, struct buf *out)
{
	size_t at = 0;

	for (int i = 0; i < 100 && at < out->len; i++) {
		ssize_t done = send(fd, out->data + at, out->len - at, MSG_NOSIGNAL | MSG_DONTWAIT);

		at += done > 0 ? (size_t)done : 0;
		fuzz_turn();
	}
	buf_clear(out);
}

static void greet(struct session *session, int fd, struct buf *out)
{
	uint8_t bytes[1024];
	struct unpack map;

	receive(session, fd, &map, bytes, sizeof(bytes));
	if (session_answer(session, &token, &map.root, worker, out))
		abort();
	unpack_release(&map);
	push(fd, out);
	receive(session, fd, &map, bytes, sizeof(bytes));
	if (session_proof(session, &map.root, out))
		abort();
	unpack_release(&map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct session session = {0};
	struct buf out = BUF_INIT;
	size_t piece;
	bool plain;
	int fd;

	fd = fuzz_connect(&(struct server_config){.token = &token});
	greet(&session, fd, &out);
	while (n > 2) {
		piece = data[0] | (data[1] & 127u) << 8;
		plain = data[1] & 128;
		data += 2;
		n -= 2;
		piece = piece < n ? piece : n;
		if (plain)
			buf_add(&out, data, piece);
		else if (piece)
			session_send(&session, &out, data, piece);
		data += piece;
		n -= piece;
	}
	push(fd, &out);
	fuzz_close(fd);
	session_release(&session);
	buf_release(&out);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned int seed)
{
	return fuzz_mutate_frames(data, n, most, seed);
}
