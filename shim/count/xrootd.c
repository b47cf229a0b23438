/* SPDX-License-Identifier: BSD-3-Clause */
/* xrootd.c - messages of XRootD's protocol, and those that were announced. */
#include "shim/count/xrootd.h"

#include <string.h>

#include "shim/shim.h"

#define HEADER_BYTES 24 /* stream, code, 16 bytes by code, length of the rest */
#define CODE_FIRST 3000
#define CODE_LAST 3039

enum code {
	CODE_READ = 3013,
	CODE_WRITE = 3019,
	CODE_READV = 3025,
	CODE_PGWRITE = 3026,
	CODE_PGREAD = 3030,
	CODE_WRITEV = 3031,
};

/* How many requests are announced by the hash of what they read, and of the other kinds. */
enum { HASHES = 4096, READS = HASHES, WRITES, OTHER, SLOTS };
static uint32_t announced[SLOTS];
static uint32_t pending;    /* all of them */
static uint32_t generation; /* since a fork */

static uint32_t hash_of(int vector, uint64_t offset, uint64_t bytes)
{
	uint64_t x = (offset << 1 | (unsigned int)vector) * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 32 ^ (uint32_t)bytes) * UINT64_C(0xd6e8feb86659fd93);
	return (uint32_t)(x >> 40) % HASHES;
}

static uint32_t slot_of(enum xrootd_request kind, uint64_t offset, uint64_t bytes)
{
	if (kind == XROOTD_READ || kind == XROOTD_VECTOR)
		return hash_of(kind == XROOTD_VECTOR, offset, bytes);
	return kind == XROOTD_READS ? READS : kind == XROOTD_OTHER ? OTHER : WRITES;
}

static void add(enum xrootd_request kind, uint32_t slot, uint32_t n)
{
	ADD(&announced[slot], n);
	if (kind == XROOTD_COPIES)
		ADD(&announced[READS], n);
	ADD(&pending, n);
}

/* generation 12 bits, kind 3, slot 13, 1 */
uint32_t xrootd_announce(enum xrootd_request kind, uint64_t offset, uint64_t bytes)
{
	uint32_t slot = slot_of(kind, offset, bytes);

	add(kind, slot, 1);
	return (LOAD(&generation) & 0xfff) << 17 | (uint32_t)kind << 14 | slot << 1 | 1;
}

void xrootd_answered(uint32_t id)
{
	if (id && id >> 17 == (LOAD(&generation) & 0xfff))
		add((enum xrootd_request)(id >> 14 & 7), id >> 1 & 0x1fff, ~0u);
}

int xrootd_is_idle(void)
{
	return !LOAD(&pending);
}

static uint64_t number(const uint8_t *at, int bytes)
{
	uint64_t n = 0;

	for (int i = 0; i < bytes; i++)
		n = n << 8 | at[i];
	return n;
}

/* The first words are the numbers 0, 0, 0, 4, 2012. */
int xrootd_begins(struct sent s)
{
	static const uint8_t greeting[20] = {[15] = 4, [18] = 2012 >> 8, [19] = 2012 & 255};
	uint64_t code;

	if (!s.at || s.bytes < sizeof(greeting))
		return 0;
	code = number(s.at + 2, 2);
	return !memcmp(s.at, greeting, sizeof(greeting)) ||
	       (s.bytes >= HEADER_BYTES && code >= CODE_FIRST && code <= CODE_LAST && !s.at[20]);
}

static int is_announced(int vector, uint64_t offset, uint64_t bytes)
{
	return LOAD(&announced[READS]) || LOAD(&announced[hash_of(vector, offset, bytes)]) ||
	       (!vector && LOAD(&announced[hash_of(0, offset, 0)]));
}

/* The client passes each message to one call; what a server has not taken of it, and the data that
 * follows a write, are no messages. */
int xrootd_is_anyones(struct sent s)
{
	uint64_t rest;

	if (!s.at || s.bytes < HEADER_BYTES)
		return 0;
	rest = number(s.at + 20, 4);
	switch (number(s.at + 2, 2)) {
	case CODE_READ: /* handle 4, offset 8, length 4 */
	case CODE_PGREAD:
		return s.bytes == HEADER_BYTES + rest &&
		       !is_announced(0, number(s.at + 8, 8), number(s.at + 16, 4));
	case CODE_READV: /* behind the header, for each chunk: handle 4, length 4, offset 8 */
		return s.bytes == HEADER_BYTES + rest && rest >= 16 &&
		       !is_announced(1, number(s.at + 32, 8), number(s.at + 28, 4));
	case CODE_WRITE:
	case CODE_PGWRITE:
	case CODE_WRITEV:
		return (s.bytes == HEADER_BYTES || s.bytes == HEADER_BYTES + rest) &&
		       !LOAD(&announced[WRITES]);
	}
	return 0;
}

void xrootd_forget(void)
{
	memset(announced, 0, sizeof(announced));
	pending = 0;
	generation++;
}
