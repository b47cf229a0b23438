/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_walk.c - any bytes as msgpack: what the walker takes for one value, msgpack-c takes for the
 * same value, and no shorter input is a value.
 */
#include <stdlib.h>
#include <string.h>

#include "common/pack.h"
#include "common/walk.h"
#include "tests/fuzz/fuzz.h"

static void need(int so)
{
	if (!so)
		abort();
}

/* Each scalar value separately. */
static void step(const uint8_t *p, size_t n)
{
	struct walk_item item;

	for (; walk_item(p, n, &item); p += item.bytes, n -= item.bytes) {
		need(item.bytes && item.bytes <= n);
		if (item.kind == WALK_TEXT)
			need(item.number < item.bytes);
		if (item.kind < WALK_ARRAY)
			need(walk_values(p, n, 1, 0) == (int64_t)item.bytes);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	int64_t used = walk_values(data, n, 1, WALK_DEPTH_MAX);
	uint8_t *exact;
	struct unpack u;
	size_t whole;

	step(data, n);
	need(used <= (int64_t)n && walk_values(data, n, 1, 3) <= used);
	if (used < 0)
		return 0;
	whole = (size_t)used;
	exact = malloc(whole); /* a sanitizer detects over-reads */
	need(exact != NULL);
	memcpy(exact, data, whole);
	need(walk_values(exact, whole, 1, WALK_DEPTH_MAX) == used);
	need(unpack_open(&u, exact, whole) == 0);
	unpack_release(&u);
	need(walk_values(exact, whole - 1, 1, WALK_DEPTH_MAX) < 0);
	free(exact);
	return 0;
}
