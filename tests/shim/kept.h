/* SPDX-License-Identifier: BSD-3-Clause */
/* kept.h - kept clocks (shim/count/clock.h) against the kernel's, queried before and after. */
#ifndef CREMA_TESTS_SHIM_KEPT_H
#define CREMA_TESTS_SHIM_KEPT_H

#include "clocks.h"
#include "shim/count/clock.h"

#define CLOSE_NS 2000ull

/* The kernel's clocks before and after the kept ones, and the turn against the kernel's count of
 * switches. */
struct tally {
	uint64_t looks, far, least_ns, most_ns;
	uint64_t turn, switches;      /* at the last comparison; the count was read after it */
	uint64_t missed, for_nothing; /* switches in the same turn; turns without a switch */
};

static inline void compare_turn(struct tally *t)
{
	uint64_t before = switches_so_far(), turn = clock_turn(), after = switches_so_far();

	if (t->turn) {
		t->missed += turn == t->turn && before > t->switches;
		t->for_nothing += turn != t->turn && after == t->switches;
	}
	t->turn = turn;
	t->switches = after;
}

static inline void compare_cpu(struct tally *t)
{
	uint64_t before, kept, after, off;

	before = cpu_ns();
	kept = clock_cpu_ns();
	after = cpu_ns();
	off = kept < before ? before - kept : kept > after ? kept - after : 0;
	t->looks++;
	t->far += off > CLOSE_NS;
	if (off > t->most_ns)
		t->most_ns = off;
}

static inline void compare_once(struct tally *t)
{
	compare_cpu(t);
	compare_turn(t);
}

/* Ahead by what interrupts or a hypervisor took since the last query, which is rare. */
static inline void assert_close(const struct tally *t)
{
	assert_true(t->looks > 100);
	assert_int_equal(t->missed, 0);
	assert_in_range(t->most_ns, 0, CLOCK_KEPT_NS + CLOSE_NS);
	assert_in_range(t->far, 0, t->looks / 20);
}

#endif
