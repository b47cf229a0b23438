/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_unclassified.c - a wait that no call shows has no class. Threads that map and unmap memory
 * make a thread that touches new memory wait in the kernel for the address space's lock: it is off
 * its core, not in the run queue, and in no call of libc.
 */
#include "harness.h"

#include <pthread.h>
#include <sys/mman.h>

#include "clocks.h"

#define MS 1000000ull
enum { MAPPERS = 3, BYTES = 64 << 20, PAGE = 4096 };

static volatile int stop;

static void *mapper(void *unused)
{
	(void)unused;
	while (!stop) {
		char *p = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

		if (p == MAP_FAILED)
			continue;
		for (int i = 0; i < 8 << 20; i += PAGE)
			p[i] = 1;
		munmap(p, 8 << 20);
	}
	return NULL;
}

static void touch_fresh_memory(void)
{
	char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	for (int i = 0; i < BYTES; i += PAGE)
		p[i] = 1;
	munmap(p, BYTES);
}

static void waiting_for_the_address_space_is_unclassified(void **state)
{
	pthread_t threads[MAPPERS];
	struct harness_task h;
	struct crema_task *t;
	struct look before;
	uint64_t wall, classes = 0;
	struct truth known;
	int64_t rest, off;

	(void)state;
	for (int i = 0; i < MAPPERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, mapper, NULL), 0);
	h = harness_begin();
	before = look();
	for (int i = 0; i < 5; i++)
		touch_fresh_memory();
	known = blocked_since(&before);
	t = harness_end(&h);
	stop = 1;
	for (int i = 0; i < MAPPERS; i++)
		pthread_join(threads[i], NULL);
	wall = harness_wall_ns(t);
	for (int i = 0; i < CREMA_TIMES; i++)
		classes += t->own.time[i];
	rest = (int64_t)(wall - classes);
	off = rest - (int64_t)known.known_ns;
	print_message("address space: wall %.3f ms, known wait %.3f ms, unclassified %.3f ms\n",
		      (double)wall / 1e6, (double)known.known_ns / 1e6, (double)rest / 1e6);
	assert_true((off < 0 ? -off : off) <= (int64_t)(wall / 100 + MS + known.stolen_ns));
	for (int i = 0; i < CREMA_TIMES; i++)
		if (i != CREMA_T_cpu && i != CREMA_T_runqueue)
			assert_true(t->own.time[i] <= MS);
	harness_free(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waiting_for_the_address_space_is_unclassified),
	};

	return cmocka_run_group_tests(tests, harness_setup, NULL);
}
