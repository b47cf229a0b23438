/* SPDX-License-Identifier: BSD-3-Clause */
/* accuracy.h - what test_time.c asserts about the time classes; also recorded for `make
 * accuracy`. */
#ifndef CREMA_TESTS_SHIM_ACCURACY_H
#define CREMA_TESTS_SHIM_ACCURACY_H

#include "clocks.h"
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const names[] = {
#define TIME(id, ...) #id,
#define COUNT(id, unit, ...)
#include "counters.def"
#undef TIME
#undef COUNT
};

/* `make accuracy` collects the assertions, one line of JSON each. */
static FILE *record(void)
{
	const char *path = getenv("CREMA_ACCURACY_TIME");

	return fopen(path ? path : "/dev/null", "ae");
}

/*
 * At least 95 % and at most 102 % of the known time is in class `id`, except for what the
 * hypervisor took. what: the program's name, or "name | how the reference is known"
 */
static void share_is(const struct crema_task *t, int id, const struct truth *k, const char *what)
{
	uint64_t in = t->own.time[id];
	int right = (in + k->stolen_ns) * 100 >= k->known_ns * 95 && in * 100 <= k->known_ns * 102;
	FILE *f = record();

	print_message("%s: known %.3f ms, in its class %.3f ms, wall %.3f ms, stolen %.0f ms;",
		      what, (double)k->known_ns / 1e6, (double)in / 1e6,
		      (double)harness_wall_ns(t) / 1e6, (double)k->stolen_ns / 1e6);
	fprintf(f,
		"{\"what\": \"%s\", \"class\": \"%s\", \"right\": %d, \"known_ns\": %ju, "
		"\"wall_ns\": %ju, \"times\": {",
		what, names[id], right, (uintmax_t)k->known_ns, (uintmax_t)harness_wall_ns(t));
	for (int i = 0; i < CREMA_TIMES; i++) {
		if (i != id && t->own.time[i])
			print_message(" class %d %.3f ms", i, (double)t->own.time[i] / 1e6);
		fprintf(f, "%s\"%s\": %ju", i ? ", " : "", names[i], (uintmax_t)t->own.time[i]);
	}
	print_message("\n");
	fprintf(f, "}}\n");
	fclose(f);
	assert_true(right);
}

/* The excess of class i: over the thread's clock for CPU, over 0 for others. */
static uint64_t too_much(const struct crema_task *t, int i, const struct truth *k)
{
	uint64_t in = t->own.time[i], due = i == CREMA_T_cpu ? k->cpu_ns : 0;

	return in > due ? in - due : due - in;
}

/* No class except `id` and those in the mask `may` is off by more than 2 % of the known time. */
static void others_but(const struct crema_task *t, int id, unsigned int may, const struct truth *k)
{
	FILE *f = record();
	int right = 1;

	may |= 1u << id;
	fprintf(f, "{\"left_out\": [");
	for (int i = 0, n = 0; i < CREMA_TIMES; i++) {
		if (may >> i & 1)
			fprintf(f, "%s\"%s\"", n++ ? ", " : "", names[i]);
		else if (too_much(t, i, k) * 100 > k->known_ns * 2)
			right = 0;
	}
	fprintf(f, "], \"right\": %d}\n", right);
	fclose(f);
	assert_true(right);
}

static void others_are_small(const struct crema_task *t, int id, int may, const struct truth *k)
{
	others_but(t, id, may < 0 ? 0 : 1u << may, k);
}

#endif
