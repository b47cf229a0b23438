/* SPDX-License-Identifier: BSD-3-Clause */
/* test_heap.c - the allocator's memory, against malloc_trim() and mallinfo2() in that process. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/heap.h"
#include "common/procfs.h"

#define MB (1u << 20)
#define BLOCKS 400000

/* A process with a heap, which takes one more step for each byte that it receives, and replies. */
struct other {
	int pid, to, from;
};

struct plan {
	size_t block, total;
	bool thread;
};

static void *block[BLOCKS];
static const struct plan *plan;

/* Random half of the blocks is freed. */
static void *fill(void *arg)
{
	size_t n = plan->total / plan->block, i;

	assert_true(n <= BLOCKS);
	for (i = 0; i < n; i++) {
		block[i] = malloc(plan->block);
		memset(block[i], 1, plan->block);
	}
	srand(7);
	for (i = 0; i < n; i++)
		if (rand() % 2) {
			free(block[i]);
			block[i] = NULL;
		}
	return arg;
}

/* The package's programs are linked for a C library that lacks it. */
#pragma weak mallinfo2

static void answer(const struct other *o)
{
	struct mallinfo2 m = mallinfo2();
	uint64_t free_bytes = m.fordblks;

	if (write(o->to, &free_bytes, 8) != 8)
		_exit(1);
}

static void live(const struct other *o)
{
	pthread_t t;
	char c;

	mallopt(M_MMAP_THRESHOLD, 1 << 25);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	if (plan->thread) {
		pthread_create(&t, NULL, fill, NULL);
		pthread_join(t, NULL);
	} else {
		fill(NULL);
	}
	answer(o);
	while (read(o->from, &c, 1) == 1) {
		if (c == 't')
			malloc_trim(0);
		if (c == 'b') /* the size word of a block in use */
			for (size_t i = 0; i < BLOCKS; i++)
				if (block[i])
					((uint64_t *)block[i])[-1] = 0x123451;
		answer(o);
	}
	_exit(0);
}

static struct other begin(const struct plan *p)
{
	int a[2], b[2];
	struct other o;

	plan = p;
	assert_int_equal(pipe(a) | pipe(b), 0);
	o.pid = fork();
	assert_true(o.pid >= 0);
	if (!o.pid) {
		close(a[0]);
		close(b[1]);
		live(&(struct other){0, a[1], b[0]});
	}
	close(a[1]);
	close(b[0]);
	o.from = a[0];
	o.to = b[1];
	return o;
}

/* Requests a step; returns fordblks after it. */
static uint64_t tell(const struct other *o, char what)
{
	uint64_t v = 0;

	if (what)
		assert_int_equal(write(o->to, &what, 1), 1);
	assert_int_equal(read(o->from, &v, 8), 8);
	return v;
}

static void end(const struct other *o)
{
	kill(o->pid, SIGKILL);
	waitpid(o->pid, NULL, 0);
	close(o->to);
	close(o->from);
}

/* smaps, as RssAnon in status may lag by a batch of pages per thread. */
static uint64_t anonymous(int pid)
{
	char text[4096];
	uint64_t v = 0;

	assert_true(procfs_slurp(text, sizeof(text), "/proc/%d/smaps_rollup", pid) > 0);
	assert_true(procfs_number(text, "Anonymous:", &v));
	return v * 1024;
}

static void near(uint64_t a, uint64_t b, uint64_t slack)
{
	if ((a > b ? a - b : b - a) > slack)
		fail_msg("%.3f MB, not %.3f MB", (double)a / MB, (double)b / MB);
}

static struct heap_sums look(const struct other *o)
{
	struct heap_sums sums = {0};
	const char *why;
	int rc = heap_read(o->pid, &sums, &why);

	if (rc)
		fail_msg("%s (%d)", why, rc);
	assert_true(sums.returnable <= sums.free && sums.free <= sums.resident);
	return sums;
}

static void test_trim(void **state)
{
	static const struct plan plans[] = {
		{600, 40 * MB, false},	   {5000, 50 * MB, false},  {20000, 100 * MB, false},
		{100000, 100 * MB, false}, {20000, 150 * MB, true}, {100000, 90 * MB, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		struct other o = begin(&plans[i]);
		uint64_t fordblks = tell(&o, 0), before = anonymous(o.pid), after;
		struct heap_sums had = look(&o), has;

		print_message("[  %7zu ] resident %.1f, free %.1f of %.1f, returnable %.1f MB\n",
			      plans[i].block, (double)had.resident / MB, (double)had.free / MB,
			      (double)fordblks / MB, (double)had.returnable / MB);
		near(had.free, fordblks, fordblks / 200 + 100000);
		tell(&o, 't');
		after = anonymous(o.pid);
		near(had.returnable, before - after, had.returnable / 200 + 100000);
		has = look(&o);
		near(has.returnable, 0, 100000);
		near(had.resident - has.resident, before - after, 100000);
		near(had.free - has.free, before - after, 100000);
		end(&o);
	}
}

/* If block headers are implausible the sums are unknown, not 0. */
static void test_broken(void **state)
{
	static const struct plan p = {20000, 10 * MB, false};
	struct other o = begin(&p);
	struct heap_sums sums;
	const char *why = NULL;

	(void)state;
	tell(&o, 0);
	look(&o);
	tell(&o, 'b');
	assert_int_equal(heap_read(o.pid, &sums, &why), -EAGAIN);
	assert_non_null(why);
	kill(o.pid, SIGKILL);
	for (int i = 0; i < 500 && heap_read(o.pid, &sums, &why) != -ESRCH; i++)
		usleep(10000);
	assert_int_equal(heap_read(o.pid, &sums, &why), -ESRCH); /* a zombie */
	end(&o);
	assert_int_equal(heap_read(o.pid, &sums, &why), -ENOENT);
	assert_string_equal(why, "the process has ended");
}

/* A process that reserved this much memory and never used it: returns the result of heap_read(),
 * and the growth of its page tables. */
static int look_at_reserved(size_t bytes, uint64_t *growth_kb)
{
	struct heap_sums sums;
	const char *why;
	uint64_t before_kb = 0, after_kb = 0;
	char text[4096], c;
	int ends[2], rc;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		c = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED;
		if (write(ends[1], &c, 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ends[0], &c, 1), 1);
	assert_int_equal(c, 0);
	assert_true(procfs_slurp(text, sizeof(text), "/proc/%d/status", pid) > 0);
	assert_true(procfs_number(text, "VmPTE:", &before_kb));
	rc = heap_read(pid, &sums, &why);
	assert_true(procfs_slurp(text, sizeof(text), "/proc/%d/status", pid) > 0);
	assert_true(procfs_number(text, "VmPTE:", &after_kb));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ends[0]);
	close(ends[1]);
	*growth_kb = after_kb - before_kb;
	return rc;
}

/* A look neither uses the worker's memory nor takes long because its address space is large. */
static void test_memory_that_was_never_used(void **state)
{
	uint64_t growth_kb;

	(void)state;
	assert_int_equal(look_at_reserved((size_t)256 << 30, &growth_kb), 0);
	assert_in_range(growth_kb, 0, 100);
	assert_int_equal(look_at_reserved((size_t)2 << 40, &growth_kb), -ETIME);
	assert_in_range(growth_kb, 0, 100);
}

int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return 0; /* their malloc has no such heaps */
#endif
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trim),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_memory_that_was_never_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
