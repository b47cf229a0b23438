/* SPDX-License-Identifier: BSD-3-Clause */
/* sort.c - a radix sort by bytes, from the lowest (sort.h). */
#include "common/sort.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BYTES sizeof(uint64_t)

static unsigned int byte_of(const struct numbered *v, unsigned int byte)
{
	return v->number >> 8 * byte & 0xff;
}

/* For one byte of all: how often each value occurs. false: it is the same everywhere. */
static bool count_values(const struct numbered *v, size_t n, unsigned int byte, size_t *count)
{
	size_t i;

	memset(count, 0, 256 * sizeof(*count));
	for (i = 0; i < n; i++)
		count[byte_of(&v[i], byte)]++;
	return n && count[byte_of(v, byte)] < n;
}

static void place_values(const struct numbered *v, size_t n, unsigned int byte, size_t *count,
			 struct numbered *to)
{
	size_t at = 0, i, next;

	for (i = 0; i < 256; i++) {
		next = at + count[i];
		count[i] = at;
		at = next;
	}
	for (i = 0; i < n; i++)
		to[count[byte_of(&v[i], byte)]++] = v[i];
}

int sort_numbered(struct numbered *v, size_t n)
{
	struct numbered *from = v, *to, *other, *spare = reallocarray(NULL, n + 1, sizeof(*v));
	size_t count[256];
	unsigned int byte;

	if (!spare)
		return -ENOMEM;
	to = spare;
	for (byte = 0; byte < BYTES; byte++) {
		if (!count_values(from, n, byte, count))
			continue;
		place_values(from, n, byte, count, to);
		other = from;
		from = to;
		to = other;
	}
	if (from != v)
		memcpy(v, from, n * sizeof(*v));
	free(spare);
	return 0;
}

uint64_t sort_real(double d)
{
	uint64_t bits;

	d += 0.0; /* the two zeros are equal */
	memcpy(&bits, &d, sizeof(bits));
	return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}
