/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_byte_sample.c - samples by the byte: their sums against what was read, by stack and task;
 * a table that is full, rows that retire while threads add to them, and stacks of requests. The
 * test takes the place of the interpreter and of the agent.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "shim/count/byte_sample.h"
#include "shim/count/net.h"
#include "shim/python/notify.h"

#define KB UINT64_C(1024)
#define MUCH (UINT64_C(1) << 34) /* passes a point in any case */
enum { SIZE = 1 << 20, DEPTH = 3, READERS = 3 };

static int fd;
static char buf[SIZE];
static __thread uint64_t stack; /* the calling thread's innermost code object */

static uint32_t walk(struct crema_py_frame *frame, uint32_t most, uint32_t *cut)
{
	*cut = 0;
	for (uint32_t i = 0; i < DEPTH && i < most; i++)
		frame[i] = (struct crema_py_frame){stack ? stack + i : 0, i, 7};
	return stack ? DEPTH : 0;
}

static void read_from(uint64_t from, size_t bytes)
{
	stack = from;
	errno = 77;
	assert_int_equal(pread(fd, buf, bytes, 0), bytes);
	assert_int_equal(errno, 77);
}

/* What is in rows whose innermost frame is that; 0: in all. */
static uint64_t sum_of(uint64_t code, double *variance, double *samples)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < CREMA_SHM_BYTE_STACKS; i++) {
		const struct crema_byte_stack *s = &crema_shm->byte_stack[i];

		if (s->state < 2 || (code && s->depth && s->frame[0].code != code))
			continue;
		bytes += s->bytes[CREMA_LINES_B_read];
		if (variance)
			*variance += (double)s->variance[CREMA_LINES_B_read] * (double)(KB * KB);
		if (samples)
			*samples += (double)s->samples[CREMA_LINES_B_read];
	}
	return bytes;
}

static void clear(void)
{
	memset(crema_shm->byte_stack, 0, sizeof(crema_shm->byte_stack));
	memset(crema_shm->byte_stack_hash, 0, sizeof(crema_shm->byte_stack_hash));
	byte_sample_walk = walk;
	crema_shm->byte_samples = 1;
	thread_self()->byte_left[CREMA_LINES_B_read] = 0;
	thread_self()->byte_gap[CREMA_LINES_B_read] = 0;
}

/* Since this thread's last point. */
static uint64_t beyond(void)
{
	const struct crema_thread *t = thread_self();

	return t->byte_gap[CREMA_LINES_B_read] - t->byte_left[CREMA_LINES_B_read];
}

static void test_sums_by_stack(void **state)
{
	static const size_t sizes[] = {100, 5000, 60000, 900000};
	uint64_t total = 0, of[4] = {0};
	struct harness_task h;
	double variance, off;

	(void)state;
	clear();
	h = harness_begin();
	for (int i = 0; i < 200000; i++) {
		int k = i % 5000 == 4999 ? 3 : i % 250 == 249 ? 2 : i % 25 == 24 ? 1 : 0;

		read_from(0x1000 * (uint64_t)(k + 1), sizes[k]);
		total += sizes[k];
		of[k] += sizes[k];
	}
	assert_int_equal(sum_of(0, NULL, NULL), total - beyond());
	for (int k = 0; k < 4; k++) {
		uint64_t found;
		double samples = 0;

		variance = 0;
		found = sum_of(0x1000 * (uint64_t)(k + 1), &variance, &samples);
		off = (double)found - (double)of[k];
		print_message("reads of %zu bytes: %llu of %llu bytes, %g samples, variance %.3g\n",
			      sizes[k], (unsigned long long)found, (unsigned long long)of[k],
			      samples, variance);
		assert_true(variance > 0 && samples > 0);
		assert_true(fabs(off) <=
			    2 * sqrt(variance / samples) * (1.96 * sqrt(samples + 1) + 1.92));
	}
	assert_int_equal(harness_end(&h)->own.count[CREMA_C_read_bytes], total);
	harness_free(&h);
}

static void pass_a_point(uint64_t from)
{
	stack = from;
	byte_sample(thread_self(), CREMA_LINES_B_read, MUCH, NULL);
}

/* Frames, span and prefix are the task's; without the agent's word nothing is sampled, and nothing
 * without a task. */
static void test_rows(void **state)
{
	struct harness_task h;
	uint32_t rows = 0;

	(void)state;
	clear();
	read_from(0x1000, SIZE);
	assert_int_equal(sum_of(0, NULL, NULL), 0);
	h = harness_begin();
	task_slot(h.owner)->span = 40;
	task_slot(h.owner)->prefix = 44;
	task_slot(h.owner)->dataset = 48;
	pass_a_point(0x2000);
	task_slot(h.owner)->dataset = 52;
	pass_a_point(0x2000);
	for (uint32_t i = 0; i < CREMA_SHM_BYTE_STACKS; i++) {
		const struct crema_byte_stack *s = &crema_shm->byte_stack[i];

		if (!s->state)
			continue;
		rows++;
		assert_int_equal(s->span, 40);
		assert_int_equal(s->prefix, 44);
		assert_true(s->dataset == 48 || s->dataset == 52);
		assert_int_equal(s->pool, 0);
		assert_int_equal(s->depth, DEPTH);
		assert_int_equal(s->frame[2].code, 0x2002);
		assert_int_equal(s->frame[2].check, 7);
		assert_int_equal(s->samples[CREMA_LINES_B_read], 1);
		assert_int_equal(s->samples[CREMA_LINES_B_received], 0);
	}
	assert_int_equal(rows, 2);
	clear();
	crema_shm->byte_samples = 0;
	for (int i = 0; i < 100; i++)
		read_from(0x3000, SIZE);
	assert_int_equal(sum_of(0, NULL, NULL), 0);
	harness_end(&h);
	harness_free(&h);
}

/* Without room the task's next sample stands for the bytes, with a spread as wide; not another
 * task's. */
static void test_a_full_table(void **state)
{
	struct harness_task h;
	uint64_t total = 0;
	double variance = 0;

	(void)state;
	clear();
	h = harness_begin();
	for (uint64_t i = 0; i < CREMA_SHM_BYTE_STACKS + 10; i++, total += MUCH)
		pass_a_point(0x10000 * (i + 1));
	assert_true(sum_of(0, NULL, NULL) < total - 9 * MUCH);
	pass_a_point(0x10000);
	total += MUCH;
	assert_int_equal(sum_of(0, NULL, NULL), total - beyond());
	sum_of(0x10000, &variance, NULL);
	assert_true(variance >= 81.0 * (double)MUCH * (double)MUCH);
	pass_a_point(0x10000 * (CREMA_SHM_BYTE_STACKS + 5));
	harness_end(&h);
	harness_free(&h);
	total = sum_of(0, NULL, NULL);
	h = harness_begin();
	task_slot(h.owner)->span = crema_shm->byte_stack[0].span;
	pass_a_point(0x10000);
	assert_true(sum_of(0, NULL, NULL) < total + 2 * MUCH);
	harness_end(&h);
	harness_free(&h);
}

static struct harness_task task_of(uint32_t span)
{
	struct harness_task h = harness_begin();

	task_slot(h.owner)->span = span;
	task_slot(h.owner)->prefix = 44;
	return h;
}

static uint64_t wait_from(uint64_t from, int time_id, uint64_t ns)
{
	uint64_t hash;

	stack = from;
	errno = 77;
	hash = byte_sample_wait(thread_self(), time_id, ns);
	assert_int_equal(errno, 77);
	return hash;
}

/* Each long wait is in the row of its stack and class, which has no bytes; also if the agent takes
 * no samples. */
static void test_long_waits(void **state)
{
	struct harness_task h;
	uint64_t hash[3];
	uint32_t rows = 0;

	(void)state;
	clear();
	crema_shm->byte_samples = 0;
	assert_int_equal(wait_from(0x1000, CREMA_T_sleep, 7), 0); /* no task */
	h = task_of(40);
	hash[0] = wait_from(0x1000, CREMA_T_sleep, 100);
	hash[1] = wait_from(0x1000, CREMA_T_lock_wait, 20);
	hash[2] = wait_from(0x2000, CREMA_T_sleep, 3);
	assert_int_equal(wait_from(0x1000, CREMA_T_sleep, 1000), hash[0]);
	assert_true(hash[0] && hash[1] && hash[2]);
	assert_true(hash[0] != hash[1] && hash[0] != hash[2] && hash[1] != hash[2]);
	crema_shm->byte_samples = 1;
	pass_a_point(0x1000);
	for (uint32_t i = 0; i < CREMA_SHM_BYTE_STACKS; i++) {
		const struct crema_byte_stack *s = &crema_shm->byte_stack[i];
		int at = crema_shm->byte_stack_hash[i] == hash[0]   ? 0
			 : crema_shm->byte_stack_hash[i] == hash[1] ? 1
								    : 2;

		if (!s->state || !s->wait) {
			assert_int_equal(s->waits, 0);
			continue;
		}
		rows++;
		assert_int_equal(crema_shm->byte_stack_hash[i], hash[at]);
		assert_int_equal(s->wait, (at == 1 ? CREMA_T_lock_wait : CREMA_T_sleep) + 1);
		assert_int_equal(s->waits, at ? 1 : 2);
		assert_int_equal(s->waited_ns, at == 0 ? 1100 : at == 1 ? 20 : 3);
		assert_int_equal(s->frame[0].code, at == 2 ? 0x2000 : 0x1000);
		assert_int_equal(s->depth, DEPTH);
		assert_int_equal(s->span, 40);
		assert_int_equal(s->prefix, 44);
		assert_int_equal(s->full, 0);
		assert_int_equal(s->bytes[CREMA_LINES_B_read], 0);
	}
	assert_int_equal(rows, 3);
	harness_end(&h);
	harness_free(&h);
}

/* What finds no room has no stack, but its class, span and time; bytes leave these rows free. */
static void test_more_long_waits_than_rows(void **state)
{
	enum { ROOM = CREMA_SHM_BYTE_STACKS - CREMA_SHM_BYTE_STACKS_OTHER, MORE = 30 };
	uint64_t waits[2] = {0}, ns[2] = {0};
	struct harness_task h;

	(void)state;
	clear();
	h = task_of(40);
	for (uint64_t i = 0; i < ROOM; i++)
		pass_a_point(0x10000 * (i + 1));
	pass_a_point(0x10000 * (ROOM + 1));
	for (uint64_t i = 0; i < MORE; i++)
		assert_int_equal(
			wait_from(0x10000 * i, i & 1 ? CREMA_T_sleep : CREMA_T_gil_wait, i), 0);
	for (uint32_t i = 0; i < CREMA_SHM_BYTE_STACKS; i++) {
		const struct crema_byte_stack *s = &crema_shm->byte_stack[i];

		assert_int_equal(s->full, i >= ROOM && s->state);
		if (!s->full)
			continue;
		assert_int_equal(s->span, 40);
		assert_int_equal(s->depth, 0);
		waits[s->wait == CREMA_T_sleep + 1] += s->waits;
		ns[s->wait == CREMA_T_sleep + 1] += s->waited_ns;
	}
	assert_int_equal(waits[0], MORE / 2);
	assert_int_equal(waits[1], MORE / 2);
	assert_int_equal(ns[0], MORE / 2 * (MORE / 2 - 1));
	assert_int_equal(ns[1], MORE / 2 * (MORE / 2));
	harness_end(&h);
	harness_free(&h);
}

/* A gap from when bytes came fast makes the error of the call that ends it as wide. */
static void test_an_earlier_gap(void **state)
{
	struct crema_thread *t = thread_self();
	struct harness_task h;
	double variance = 0;

	(void)state;
	clear();
	h = harness_begin();
	t->byte_gap[CREMA_LINES_B_read] = MUCH;
	t->byte_left[CREMA_LINES_B_read] = 1;
	read_from(0x8000, 2);
	assert_int_equal(sum_of(0x8000, &variance, NULL), MUCH);
	assert_true(variance >= (double)MUCH * (double)MUCH);
	harness_end(&h);
	harness_free(&h);
}

static bool ended;

struct reader {
	uint32_t owner;
	uint64_t stack, total, beyond;
};

static void *reads_on(void *arg)
{
	struct reader *r = arg;
	struct owner before = segment_begin(r->owner, 1);

	thread_self()->byte_left[CREMA_LINES_B_read] = 0;
	thread_self()->byte_gap[CREMA_LINES_B_read] = 0;
	stack = r->stack;
	for (uint64_t i = 0; i < 300000; i++, r->total += MUCH)
		byte_sample(thread_self(), CREMA_LINES_B_read, MUCH, NULL);
	r->beyond = beyond();
	segment_end(before);
	return NULL;
}

static uint64_t take_out(struct crema_byte_stack *s)
{
	return __atomic_exchange_n(&s->bytes[CREMA_LINES_B_read], 0, __ATOMIC_RELAXED);
}

/* As the agent does, but all the time; by the row's stack. */
static void *retires(void *arg)
{
	uint64_t *taken = arg, *bytes;

	while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE))
		for (uint32_t i = 0; i < CREMA_SHM_BYTE_STACKS; i++) {
			struct crema_byte_stack *s = &crema_shm->byte_stack[i];

			if (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) < 2)
				continue;
			bytes = &taken[s->frame[0].code / 0x1000];
			*bytes += take_out(s);
			__atomic_store_n(&s->state, 3, __ATOMIC_SEQ_CST);
			if (__atomic_load_n(&s->users, __ATOMIC_SEQ_CST))
				continue;
			*bytes += take_out(s);
			__atomic_store_n(&crema_shm->byte_stack_hash[i], 0, __ATOMIC_RELAXED);
			__atomic_store_n(&s->state, 0, __ATOMIC_RELEASE);
		}
	return NULL;
}

static void test_rows_that_retire(void **state)
{
	struct reader readers[READERS] = {{0}};
	uint64_t taken[READERS + 1] = {0};
	pthread_t threads[READERS], agent;
	struct harness_task h;

	(void)state;
	clear();
	h = harness_begin();
	pthread_create(&agent, NULL, retires, taken);
	for (int i = 0; i < READERS; i++) {
		readers[i].owner = h.owner;
		readers[i].stack = 0x1000 * (uint64_t)(i + 1);
		pthread_create(&threads[i], NULL, reads_on, &readers[i]);
	}
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	__atomic_store_n(&ended, true, __ATOMIC_RELEASE);
	pthread_join(agent, NULL);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(taken[i + 1] + sum_of(readers[i].stack, NULL, NULL),
				 readers[i].total - readers[i].beyond);
	harness_end(&h);
	harness_free(&h);
}

/* Another thread receives for the task: the stack that asked, until 256 others have replaced it. */
static void test_requests(void **state)
{
	struct crema_thread *t = thread_self();
	struct byte_request of;
	struct harness_task h;
	uint32_t number, found[2] = {0};

	(void)state;
	clear();
	assert_int_equal(byte_sample_keep(), 0); /* no task */
	h = harness_begin();
	of.task = task_name(h.owner);
	stack = 0x5000;
	number = byte_sample_keep();
	assert_true(number);
	assert_int_equal(byte_sample_keep(), number);
	of.stack = number;
	segment_end(h.before);
	stack = 0x9000; /* of the thread that receives */
	byte_sample(t, CREMA_LINES_B_received, MUCH, &of);
	h.before = segment_begin(h.owner, 0);
	for (uint64_t i = 0; i < 20000; i++) {
		stack = 0x100000 + 16 * i;
		byte_sample_keep();
	}
	segment_end(h.before);
	byte_sample(t, CREMA_LINES_B_received, MUCH, &of);
	h.before = segment_begin(h.owner, 0);
	for (uint32_t i = 0; i < CREMA_SHM_BYTE_STACKS; i++) {
		const struct crema_byte_stack *s = &crema_shm->byte_stack[i];

		if (!s->state)
			continue;
		assert_int_equal(s->pool, 1);
		assert_true(s->bytes[CREMA_LINES_B_received] > MUCH / 2);
		assert_true(!s->depth || s->frame[0].code == 0x5000);
		found[s->depth != 0]++;
	}
	assert_int_equal(found[0], 1);
	assert_int_equal(found[1], 1);
	harness_end(&h);
	harness_free(&h);
}

/* The number of a closed connection is another one's: who requested what it receives is unknown. */
static void test_a_closed_connection(void **state)
{
	enum { CONNECTION = 700 };
	struct harness_task h;
	uint32_t rows = 0;

	(void)state;
	clear();
	h = harness_begin();
	stack = 0x5000;
	net_bind(CONNECTION, task_name(h.owner), byte_sample_keep());
	notify_fd_closed(CONNECTION);
	net_send_binds(CONNECTION);
	segment_end(h.before);
	stack = 0x9000; /* of the thread that receives */
	net_received(CONNECTION, MUCH);
	notify_fd_closed(CONNECTION);
	h.before = segment_begin(h.owner, 0);
	for (uint32_t i = 0; i < CREMA_SHM_BYTE_STACKS; i++) {
		if (!crema_shm->byte_stack[i].state)
			continue;
		assert_int_equal(crema_shm->byte_stack[i].depth, 0);
		rows++;
	}
	assert_int_equal(rows, 1);
	harness_end(&h);
	harness_free(&h);
}

/* A pool thread's stack goes on with the one that submitted its work. */
static void test_submitters(void **state)
{
	const struct crema_byte_stack *s = NULL;
	struct harness_task h;
	uint32_t number;

	(void)state;
	clear();
	h = harness_begin();
	stack = 0x6000;
	number = byte_sample_keep();
	assert_int_equal(byte_sample_submitter(number), 0);
	pass_a_point(0x7000);
	assert_int_equal(byte_sample_submitter(0), number);
	for (uint32_t i = 0; i < CREMA_SHM_BYTE_STACKS && !s; i++)
		s = crema_shm->byte_stack[i].state ? &crema_shm->byte_stack[i] : NULL;
	assert_non_null(s);
	assert_int_equal(s->depth, 2 * DEPTH);
	assert_int_equal(s->frame[0].code, 0x7000);
	assert_int_equal(s->frame[DEPTH].code, 0x6000);
	harness_end(&h);
	harness_free(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums_by_stack),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_an_earlier_gap),
		cmocka_unit_test(test_a_full_table),
		cmocka_unit_test(test_long_waits),
		cmocka_unit_test(test_more_long_waits_than_rows),
		cmocka_unit_test(test_rows_that_retire),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_a_closed_connection),
		cmocka_unit_test(test_submitters),
	};
	const char *path = harness_file("byte_sample.data", SIZE);

	harness_arm();
	fd = open(path, O_RDONLY);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
