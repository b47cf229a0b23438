/* SPDX-License-Identifier: BSD-3-Clause */
/* kept.h - kept clocks (shim/count/clock.h) against the kernel's, asked before and after. */
#ifndef CREMA_TESTS_SHIM_KEPT_H
#define CREMA_TESTS_SHIM_KEPT_H

#include "clocks.h"
#include "shim/count/clock.h"

#define CLOSE_NS 2000ull

/* Two looks at the kernel's clocks with the kept ones in between. */
struct tally {
	uint64_t looks, far, least_ns, most_ns;
	uint64_t wrong_switches;
};

static inline void compare_once(struct tally *t)
{
	uint64_t before, kept, after, s_before, s_kept, s_after, off;

	before = cpu_ns();
	kept = clock_cpu_ns();
	after = cpu_ns();
	s_before = switches_so_far();
	s_kept = clock_switches();
	s_after = switches_so_far();
	off = kept < before ? before - kept : kept > after ? kept - after : 0;
	t->looks++;
	t->far += off > CLOSE_NS;
	if (off > t->most_ns)
		t->most_ns = off;
	t->wrong_switches += s_kept < s_before || s_kept > s_after;
}

/* Ahead by what interrupts or a hypervisor took since the last question, which is rare. */
static inline void assert_close(const struct tally *t)
{
	assert_true(t->looks > 100);
	assert_int_equal(t->wrong_switches, 0);
	assert_in_range(t->most_ns, 0, CLOCK_KEPT_NS + CLOSE_NS);
	assert_in_range(t->far, 0, t->looks / 20);
}

#endif
