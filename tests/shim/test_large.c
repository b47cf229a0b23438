/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_large.c - large allocations by stack: every way to allocate and free, what is kept, a table
 * that is full, threads that allocate and free at once, an end of a task and a release() that find
 * the tables busy, forked children. The test takes the place of the interpreter and of the agent.
 */
#include "harness.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/count/byte_sample.h"
#include "shim/count/large.h"

#define MB (UINT64_C(1) << 20)
enum { THREADS = 4, BLOCKS = 64, ROUNDS = 4000 };

static __thread uint64_t stack;

static uint32_t walk(struct crema_py_frame *frame, uint32_t most, uint32_t *cut)
{
	(void)most;
	*cut = 0;
	frame[0] = (struct crema_py_frame){stack, 5, 7};
	return stack != 0;
}

/* Sums of rows with that innermost frame; 0: of all. The frames are where the agent reads them. */
static struct crema_large_row sum_of(uint64_t code)
{
	const struct crema_py_frame *frames = (void *)(uintptr_t)crema_shm->large_frames;
	struct crema_large_row sum = {0};

	assert_int_equal(crema_shm->large_seq % 2, 0);
	for (uint32_t i = 0; i < CREMA_LARGE_ROWS; i++) {
		const struct crema_large_row *r = &crema_shm->large[i];

		if (!r->number ||
		    (code && (!r->depth || frames[i * CREMA_BYTE_DEPTH].code != code)))
			continue;
		sum.allocations += r->allocations;
		sum.allocated_bytes += r->allocated_bytes;
		sum.live_bytes += r->live_bytes;
		sum.kept_bytes += r->kept_bytes;
		sum.share_bytes += crema_large_share(r, &crema_shm->large_span[r->at]);
		sum.full += r->full;
	}
	return sum;
}

static const struct crema_task *counts_of(const struct harness_task *h)
{
	return task_slot(h->owner);
}

static int freed_is_unknown(const struct harness_task *h)
{
	return (counts_of(h)->count_unknown & CREMA_COUNT_BIT(large_freed_bytes)) != 0;
}

static void begin(void)
{
	memset(crema_shm->large, 0, sizeof(crema_shm->large));
	memset(crema_shm->large_told, 0, sizeof(crema_shm->large_told));
	memset(crema_shm->large_span, 0, sizeof(crema_shm->large_span));
	crema_shm->totals.large_refused = crema_shm->totals.large_refused_bytes = 0;
	byte_sample_walk = walk;
	large_begin();
	assert_int_equal(large_least, MB);
}

/* As the agent does. */
static void tell(void)
{
	for (uint32_t i = 0; i < CREMA_LARGE_ROWS; i++) {
		crema_shm->large_told[i].number = crema_shm->large[i].number;
		crema_shm->large_told[i].changes = crema_shm->large[i].changes;
	}
}

static void *volatile block; /* no call may be optimized out */
static void *(*volatile allocate)(size_t) = malloc;
static void (*volatile release)(void *) = free;
static volatile size_t much = SIZE_MAX / 2;

/* free(NULL) and realloc(NULL) while a block is recorded at the place that NULL would have. */
static void test_no_address(void **state)
{
	struct harness_task h;
	uintptr_t like = 16;

	(void)state;
	begin();
	h = harness_begin();
	stack = 0x1000;
	while (large_home((void *)like) != large_home(NULL))
		like += 16;
	large_allocated((void *)like, 2 * MB);
	assert_true(large_may_hold(NULL));
	release(NULL);
	block = realloc(NULL, 100);
	release(block);
	block = realloc(NULL, 3 * MB);
	assert_int_equal(sum_of(0x1000).live_bytes, 5 * MB);
	release(block);
	large_freed((void *)like);
	assert_int_equal(sum_of(0x1000).live_bytes, 0);
	harness_end(&h);
	harness_free(&h);
}

static void check_way(uint64_t from, void *p, uint64_t bytes)
{
	struct crema_large_row r = sum_of(from);

	assert_int_equal(errno, 77);
	assert_int_equal(r.allocations, 1);
	assert_int_equal(r.allocated_bytes, bytes);
	assert_int_equal(r.live_bytes, bytes);
	release(p);
	assert_int_equal(errno, 77);
	assert_int_equal(sum_of(from).live_bytes, 0);
	stack += 0x1000;
}

static void test_ways(void **state)
{
	struct harness_task h;
	void *p = NULL;

	(void)state;
	begin();
	block = allocate(2 * MB); /* no task */
	release(block);
	h = harness_begin();
	stack = 0x1000;
	errno = 77;
	block = allocate(MB);
	check_way(0x1000, block, MB);
	block = calloc(3, MB);
	check_way(0x2000, block, 3 * MB);
	block = realloc(NULL, 4 * MB);
	check_way(0x3000, block, 4 * MB);
	block = reallocarray(NULL, 5, MB);
	check_way(0x4000, block, 5 * MB);
	assert_int_equal(posix_memalign(&p, 64, 6 * MB), 0);
	check_way(0x5000, p, 6 * MB);
	block = aligned_alloc(4096, 7 * MB);
	check_way(0x6000, block, 7 * MB);
	block = memalign(4096, 8 * MB);
	check_way(0x7000, block, 8 * MB);
	block = valloc(9 * MB);
	check_way(0x8000, block, 9 * MB);
	block = pvalloc(10 * MB);
	check_way(0x9000, block, 10 * MB);
	stack = 0xa000;
	block = allocate(MB - 1);
	release(block);
	assert_null(block = calloc(much, 4));
	assert_null(block = allocate(much / 2));
	assert_null(block = reallocarray(NULL, much, 4));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(sum_of(0xa000).allocations, 0);
	assert_int_equal(sum_of(0).allocations, 9);
	assert_int_equal(crema_shm->totals.large_refused, 0);
	harness_end(&h);
	harness_free(&h);
}

static void test_growth(void **state)
{
	struct harness_task h;
	void *p;

	(void)state;
	begin();
	h = harness_begin();
	stack = 0x1000;
	p = allocate(2 * MB);
	memset(p, 5, 2 * MB);
	stack = 0x2000;
	p = realloc(p, 64 * MB);
	assert_int_equal(((char *)p)[2 * MB - 1], 5);
	assert_int_equal(sum_of(0x1000).live_bytes, 0);
	assert_int_equal(sum_of(0x2000).live_bytes, 64 * MB);
	/* never both at once */
	assert_int_equal(sum_of(0).share_bytes, 64 * MB);
	stack = 0x3000;
	block = p;
	assert_null(realloc(p, much / 2));
	p = block;
	assert_int_equal(sum_of(0x2000).live_bytes, 64 * MB);
	p = realloc(p, 1000);
	assert_int_equal(sum_of(0).live_bytes, 0);
	p = realloc(p, 3 * MB);
	assert_int_equal(sum_of(0x3000).live_bytes, 3 * MB);
	assert_int_equal(sum_of(0).allocated_bytes, 69 * MB);
	block = realloc(p, 0);
	assert_int_equal(sum_of(0).live_bytes, 0);
	harness_end(&h);
	harness_free(&h);
}

/* The task's end, and later frees; what its threads allocate after its end. */
static void test_kept(void **state)
{
	struct harness_task h, other;
	void *mine, *freed;

	(void)state;
	begin();
	h = harness_begin();
	stack = 0x1000;
	mine = allocate(2 * MB);
	freed = allocate(3 * MB);
	stack = 0x2000;
	release(freed);
	assert_int_equal(sum_of(0).kept_bytes, 0);
	harness_end(&h);
	assert_int_equal(sum_of(0x1000).kept_bytes, 2 * MB);
	segment_begin(h.owner, 1);
	freed = allocate(5 * MB);
	segment_end(h.before);
	assert_int_equal(sum_of(0x2000).kept_bytes, 5 * MB);
	harness_free(&h);
	other = harness_begin();
	block = allocate(7 * MB);
	assert_int_equal(sum_of(0).kept_bytes, 7 * MB);
	release(freed);
	release(mine);
	assert_int_equal(sum_of(0).kept_bytes, 0);
	assert_int_equal(sum_of(0).live_bytes, 7 * MB);
	harness_end(&other);
	harness_free(&other);
	release(block);
	assert_int_equal(sum_of(0).kept_bytes, 0);
}

/* Each span has its own maximum, and each row its share of it. */
static void test_peaks(void **state)
{
	struct harness_task h;
	void *a, *b;

	(void)state;
	begin();
	h = harness_begin();
	task_slot(h.owner)->span = 40;
	stack = 0x1000;
	a = allocate(10 * MB);
	stack = 0x2000;
	b = allocate(20 * MB);
	release(a);
	stack = 0x3000;
	a = allocate(5 * MB);
	assert_int_equal(sum_of(0x1000).share_bytes, 10 * MB);
	assert_int_equal(sum_of(0x2000).share_bytes, 20 * MB);
	assert_int_equal(sum_of(0x3000).share_bytes, 0);
	stack = 0x1000; /* a second change after the maximum */
	block = allocate(2 * MB);
	release(block);
	assert_int_equal(sum_of(0x1000).share_bytes, 10 * MB);
	task_slot(h.owner)->span = 44;
	stack = 0x4000;
	block = allocate(50 * MB);
	release(block);
	assert_int_equal(sum_of(0x1000).share_bytes, 10 * MB);
	assert_int_equal(sum_of(0x4000).share_bytes, 50 * MB);
	task_slot(h.owner)->span = 40;
	block = allocate(10 * MB);
	assert_int_equal(sum_of(0x1000).share_bytes, 0);
	assert_int_equal(sum_of(0x2000).share_bytes, 20 * MB);
	assert_int_equal(sum_of(0x3000).share_bytes, 5 * MB);
	assert_int_equal(sum_of(0).share_bytes, (20 + 5 + 10 + 50) * MB);
	release(a);
	release(b);
	release(block);
	harness_end(&h);
	harness_free(&h);
}

/* Without a row for its stack, a block goes to the row of those that found none; rows that nothing
 * refers to are used again, once the agent knows them. */
static void test_full_rows(void **state)
{
	static void *held[CREMA_LARGE_ROWS + 10];
	struct harness_task h;
	struct crema_large_row r;

	(void)state;
	begin();
	h = harness_begin();
	for (uint64_t i = 0; i < CREMA_LARGE_ROWS + 10; i++) {
		stack = 0x1000 * (i + 1);
		held[i] = allocate(MB);
	}
	r = sum_of(0);
	assert_int_equal(r.live_bytes, (CREMA_LARGE_ROWS + 10) * MB);
	assert_int_equal(r.full, 1);
	assert_int_equal(crema_shm->totals.large_refused, 0);
	for (uint64_t i = 0; i < CREMA_LARGE_ROWS + 10; i++)
		release(held[i]);
	stack = 0x999000;
	block = allocate(MB);
	assert_int_equal(sum_of(0x999000).live_bytes, 0); /* the agent does not know the others */
	release(block);
	tell();
	block = allocate(MB);
	assert_int_equal(sum_of(0x999000).live_bytes, MB);
	release(block);
	harness_end(&h);
	harness_free(&h);
}

static void test_full_blocks(void **state)
{
	static void *held[2 * LARGE_BLOCKS];
	struct harness_task h;
	uint64_t refused;

	(void)state;
	begin();
	h = harness_begin();
	stack = 0x1000;
	for (uint32_t i = 0; i < 2 * LARGE_BLOCKS; i++)
		held[i] = allocate(MB);
	refused = crema_shm->totals.large_refused;
	print_message("%u blocks: %llu refused\n", 2 * LARGE_BLOCKS, (unsigned long long)refused);
	assert_true(freed_is_unknown(&h));
	assert_true(refused >= LARGE_BLOCKS && refused < 3 * LARGE_BLOCKS / 2);
	assert_int_equal(crema_shm->totals.large_refused_bytes, refused * MB);
	assert_int_equal(sum_of(0).live_bytes, (2 * LARGE_BLOCKS - refused) * MB);
	harness_end(&h);
	assert_int_equal(sum_of(0).kept_bytes, (2 * LARGE_BLOCKS - refused) * MB);
	for (uint32_t i = 0; i < 2 * LARGE_BLOCKS; i++)
		release(held[i]);
	assert_int_equal(sum_of(0).live_bytes, 0);
	assert_int_equal(sum_of(0).kept_bytes, 0);
	assert_int_equal(large_live, 0);
	harness_free(&h);
}

/* Blocks that threads pass to each other. */
static void *shared[BLOCKS];

struct worker {
	uint32_t owner;
	uint64_t stack, bytes, calls;
};

static void *exchanges(void *arg)
{
	struct worker *w = arg;
	struct owner before = segment_begin(w->owner, 1);
	uint64_t random = w->stack | 1;

	stack = w->stack;
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t size;
		void *p;

		random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
		size = MB + (random >> 44);
		p = allocate(size);
		if (random & UINT64_C(1) << 40) {
			p = realloc(p, size + MB);
			w->bytes += size + MB;
			w->calls++;
		}
		w->bytes += size;
		w->calls++;
		release(__atomic_exchange_n(&shared[random >> 33 & (BLOCKS - 1)], p,
					    __ATOMIC_ACQ_REL));
	}
	segment_end(before);
	return NULL;
}

static void test_threads(void **state)
{
	struct worker workers[THREADS] = {{0}};
	pthread_t threads[THREADS];
	struct harness_task h;
	uint64_t bytes = 0, calls = 0, refused;

	(void)state;
	begin();
	h = harness_begin();
	for (int i = 0; i < THREADS; i++) {
		workers[i].owner = h.owner;
		workers[i].stack = 0x1000 * (uint64_t)(i + 1);
		pthread_create(&threads[i], NULL, exchanges, &workers[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		bytes += workers[i].bytes;
		calls += workers[i].calls;
	}
	refused = crema_shm->totals.large_refused;
	print_message("%llu allocations: %llu refused\n", (unsigned long long)calls,
		      (unsigned long long)refused);
	assert_int_equal(counts_of(&h)->own.count[CREMA_C_large_allocated_bytes], bytes);
	assert_true(freed_is_unknown(&h) || !refused);
	if (!freed_is_unknown(&h))
		assert_int_equal(bytes - counts_of(&h)->own.count[CREMA_C_large_freed_bytes],
				 sum_of(0).live_bytes);
	harness_end(&h);
	assert_int_equal(sum_of(0).allocations + refused, calls);
	assert_int_equal(sum_of(0).allocated_bytes + crema_shm->totals.large_refused_bytes, bytes);
	if (!refused)
		for (int i = 0; i < THREADS; i++)
			assert_int_equal(sum_of(workers[i].stack).allocated_bytes,
					 workers[i].bytes);
	assert_int_equal(sum_of(0).kept_bytes, sum_of(0).live_bytes);
	bytes = counts_of(&h)->own.count[CREMA_C_large_freed_bytes];
	for (int i = 0; i < BLOCKS; i++) {
		release(shared[i]);
		shared[i] = NULL;
	}
	assert_int_equal(sum_of(0).live_bytes, 0);
	assert_int_equal(sum_of(0).kept_bytes, 0);
	assert_int_equal(large_live, 0);
	/* not while it ran */
	assert_int_equal(counts_of(&h)->own.count[CREMA_C_large_freed_bytes], bytes);
	harness_free(&h);
}

/* Another thread changes the tables, and is stopped: nothing waits for it, and all is right after
 * the next change. */
static void test_busy(void **state)
{
	struct harness_task h;
	void *a, *b, *c;

	(void)state;
	begin();
	h = harness_begin();
	stack = 0x1000;
	a = allocate(2 * MB);
	b = allocate(4 * MB);
	c = allocate(8 * MB);
	crema_shm->large_seq++;
	release(a);
	a = allocate(16 * MB); /* perhaps where the first one was */
	c = realloc(c, 32 * MB);
	harness_end(&h);
	crema_shm->large_seq++;
	assert_int_equal(crema_shm->totals.large_refused, 2);
	assert_int_equal(crema_shm->totals.large_refused_bytes, 48 * MB);
	assert_int_equal(counts_of(&h)->own.count[CREMA_C_large_allocated_bytes], 62 * MB);
	assert_true(freed_is_unknown(&h));
	harness_free(&h);
	h = harness_begin();
	block = allocate(MB);
	assert_int_equal(sum_of(0).live_bytes, 5 * MB);
	assert_int_equal(sum_of(0).kept_bytes, 4 * MB);
	release(a);
	release(b);
	release(c);
	release(block);
	assert_int_equal(sum_of(0).live_bytes, 0);
	/* b is another task's, a and c were refused */
	assert_int_equal(counts_of(&h)->own.count[CREMA_C_large_freed_bytes], MB);
	assert_false(freed_is_unknown(&h));
	harness_end(&h);
	harness_free(&h);
}

/* A block that was freed unseen: its address is another block's by now. */
static void test_address_given_away_again(void **state)
{
	struct harness_task h;
	void *p;

	(void)state;
	begin();
	h = harness_begin();
	stack = 0x1000;
	p = allocate(2 * MB);
	stack = 0x2000;
	large_allocated(p, 3 * MB);
	assert_int_equal(sum_of(0x1000).live_bytes, 0);
	assert_int_equal(sum_of(0x2000).live_bytes, 3 * MB);
	segment_end(h.before);
	large_allocated(p, 4 * MB); /* no task */
	assert_int_equal(sum_of(0).live_bytes, 0);
	h.before = segment_begin(h.owner, 0);
	release(p);
	harness_end(&h);
	harness_free(&h);
}

static void test_fork(void **state)
{
	struct harness_task h;
	uint64_t seq;
	int status;
	void *p;

	(void)state;
	begin();
	h = harness_begin();
	stack = 0x1000;
	p = allocate(2 * MB);
	seq = crema_shm->large_seq;
	if (fork() == 0) {
		release(p);
		p = realloc(allocate(3 * MB), 5 * MB);
		_exit(p == NULL);
	}
	wait(&status);
	assert_int_equal(status, 0);
	assert_int_equal(crema_shm->large_seq, seq);
	assert_int_equal(sum_of(0).live_bytes, 2 * MB);
	release(p);
	large_end();
	block = allocate(2 * MB);
	release(block);
	assert_int_equal(sum_of(0).allocations, 1);
	harness_end(&h);
	harness_free(&h);
}

static void test_options(void **state)
{
	static const struct {
		const char *text;
		size_t least;
	} cases[] = {{"0", SIZE_MAX}, {"3M", 3 << 20}, {"1000000", 1000000}, {"5", 64 << 10},
		     {"", 1 << 20},   {"2x", 1 << 20}, {"1G", 1 << 30},	     {"4kk", 1 << 20}};

	const uint64_t both =
		CREMA_COUNT_BIT(large_allocated_bytes) | CREMA_COUNT_BIT(large_freed_bytes);

	(void)state;
	assert_int_equal(crema_shm->totals.count_unknown & both, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		setenv("CREMA_LARGE_BYTES", cases[i].text, 1);
		large_begin();
		assert_int_equal(large_least, cases[i].least);
		assert_int_equal(crema_shm->large_bytes,
				 cases[i].least == SIZE_MAX ? 0 : cases[i].least);
	}
	unsetenv("CREMA_LARGE_BYTES");
	setenv("CREMA_SAMPLE_HZ", "0", 1);
	large_begin();
	assert_int_equal(large_least, SIZE_MAX);
	assert_int_equal(crema_shm->totals.count_unknown & both, both);
	unsetenv("CREMA_SAMPLE_HZ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_address),  cmocka_unit_test(test_ways),
		cmocka_unit_test(test_growth),	    cmocka_unit_test(test_kept),
		cmocka_unit_test(test_peaks),	    cmocka_unit_test(test_full_rows),
		cmocka_unit_test(test_full_blocks), cmocka_unit_test(test_threads),
		cmocka_unit_test(test_busy),	    cmocka_unit_test(test_address_given_away_again),
		cmocka_unit_test(test_fork),	    cmocka_unit_test(test_options),
	};

#ifndef LARGE_INTERPOSED
	printf("[  SKIPPED  ] test_large: malloc is a sanitizer's\n");
	return 0;
#endif
	harness_arm();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
