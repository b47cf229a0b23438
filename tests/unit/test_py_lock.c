/* SPDX-License-Identifier: BSD-3-Clause */
/* test_py_lock.c - who holds a lock, in frames of a synthetic Python 3.12 and 3.14. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "agent/py_lock.h"

#define LOW UINT64_C(0x10000)
#define MEMORY 0x4000u
#define BYTES_TYPE (LOW + 0x100)
#define LOCK_TYPE (LOW + 0x200)
#define RLOCK_TYPE (LOW + 0x280)
#define LOCK (LOW + 0x300)
#define RLOCK (LOW + 0x340)
#define EXIT (LOW + 0x400)  /* its __exit__, bound */
#define ENTER (LOW + 0x440) /* its __enter__, bound */
#define DESCRIPTOR (LOW + 0x480)
#define RUNTIME (LOW + 0x800)
#define NAMES (LOW + 0x600)
#define TABLE (LOW + 0x700)
#define FRAME (LOW + 0x1000)
#define CODE (LOW + 0x2000)
#define SEMAPHORE UINT64_C(0x70000)
#define VALUE(i) (FRAME + 72 + 8 * (2 + (uint64_t)(i))) /* two variables are before it */

static uint8_t memory[MEMORY];

static void put(uint64_t at, uint64_t v)
{
	memcpy(memory + (at - LOW), &v, sizeof(v));
}

static void put_text(uint64_t at, const char *text)
{
	memcpy(memory + (at - LOW), text, strlen(text) + 1);
}

static size_t take(void *arg, uint64_t address, void *to, size_t bytes)
{
	size_t n = address < LOW || address - LOW > MEMORY ? 0 : MEMORY - (address - LOW);

	(void)arg;
	n = n < bytes ? n : bytes;
	memcpy(to, memory + (address - LOW), n);
	return n;
}

static void put_type(uint64_t type, uint64_t name, const char *text)
{
	put(type + 24, name);
	put_text(name, text);
}

static void put_method(uint64_t method, uint64_t def, uint64_t name, const char *text)
{
	put(method + 16, def);
	put(method + 24, LOCK);
	put(def, name);
	put_text(name, text);
}

/* Instructions 4 to 7 are in a handler that keeps one value, 8 to 9 in one that keeps none. */
static struct py_process process(struct py_frame *f)
{
	static const uint8_t exceptions[] = {0x80 | 4, 4, 20, 1 << 1 | 1, 0x80 | 8, 2, 30, 0};
	struct py_process p = {.read = take, .version = 0x030c0100, .bytes_type = BYTES_TYPE};

	memset(memory, 0, sizeof(memory));
	assert_true(py_stack_knows(&p));
	put_type(LOCK_TYPE, LOW + 0x240, "_thread.lock");
	put_type(RLOCK_TYPE, LOW + 0x2c0, "_thread.RLock");
	put(LOCK + 8, LOCK_TYPE);
	put(LOCK + 16, SEMAPHORE);
	put(RLOCK + 8, RLOCK_TYPE);
	put(RLOCK + 16, SEMAPHORE + 64);
	put(RLOCK + 24, 4711);
	put_method(EXIT, LOW + 0x500, LOW + 0x520, "__exit__");
	put_method(ENTER, LOW + 0x540, LOW + 0x560, "__enter__");
	put(NAMES + 16, 2);
	put(CODE + 96, NAMES);
	put(CODE + 40, TABLE);
	put(TABLE + 8, BYTES_TYPE);
	put(TABLE + 16, sizeof(exceptions));
	memcpy(memory + (TABLE + 32 - LOW), exceptions, sizeof(exceptions));
	put(VALUE(0), EXIT);
	*f = (struct py_frame){.frame = FRAME, .code = CODE};
	return p;
}

static bool is_within(const struct py_process *p, struct py_frame f, unsigned int instruction)
{
	static const struct py_lock lock = {.object = LOCK, .type = LOCK_TYPE};

	f.instruction = CODE + 192 + 2 * instruction;
	return py_lock_is_within(p, &lock, &f, 1);
}

static void test_the_body_of_a_with(void **state)
{
	struct py_frame f;
	struct py_process p = process(&f);

	(void)state;
	for (unsigned int i = 0; i < 12; i++)
		assert_int_equal(is_within(&p, f, i), i >= 4 && i < 8);
	put(VALUE(0), 0);
	put(VALUE(1), EXIT); /* above what the handler keeps: left from before */
	assert_false(is_within(&p, f, 5));
	put(VALUE(0), ENTER); /* another method */
	assert_false(is_within(&p, f, 5));
	put(VALUE(0), EXIT);
	put(EXIT + 24, RLOCK); /* of another lock */
	assert_false(is_within(&p, f, 5));
	p = process(&f);
	put(TABLE + 8, LOCK_TYPE); /* no table of exceptions */
	assert_false(is_within(&p, f, 5));
}

/* Since 3.14 the method is not bound: its lock lies above it. */
static void test_a_method_that_is_not_bound(void **state)
{
	struct py_frame f;
	struct py_process p = process(&f);

	(void)state;
	memory[TABLE + 32 + 3 - LOW] = 2 << 1 | 1;
	put(DESCRIPTOR + 16, LOCK_TYPE);
	put(DESCRIPTOR + 40, LOW + 0x500);
	put(VALUE(0), DESCRIPTOR | 1);
	put(VALUE(1), LOCK | 1);
	assert_true(is_within(&p, f, 5));
	put(VALUE(1), RLOCK | 1);
	assert_false(is_within(&p, f, 5));
	put(VALUE(1), LOCK | 1);
	put(DESCRIPTOR + 40, LOW + 0x540); /* __enter__ */
	assert_false(is_within(&p, f, 5));
}

static void test_what_a_thread_waits_for(void **state)
{
	struct py_frame f;
	struct py_process p = process(&f);
	struct py_lock lock;

	(void)state;
	assert_true(py_lock_of(&p, SEMAPHORE, &f, &lock)); /* by its bound method */
	assert_int_equal(lock.object, LOCK);
	assert_int_equal(lock.type, LOCK_TYPE);
	assert_false(lock.stores_owner);
	assert_int_equal(py_lock_owner(&p, &lock), 0);
	assert_false(py_lock_of(&p, SEMAPHORE + 64, &f, &lock));
	put(VALUE(3), RLOCK);
	assert_true(py_lock_of(&p, SEMAPHORE + 64, &f, &lock));
	assert_true(lock.stores_owner);
	assert_int_equal(py_lock_owner(&p, &lock), 4711);
	put(RLOCK + 8, BYTES_TYPE); /* something else has that word there */
	assert_false(py_lock_of(&p, SEMAPHORE + 64, &f, &lock));
	put(NAMES + 16, UINT64_C(1) << 40);
	assert_false(py_lock_of(&p, SEMAPHORE, &f, &lock));
	put(LOW + 0x900 + 136, 4711);
	assert_int_equal(py_thread_ident(&p, LOW + 0x900), 4711);
	assert_int_equal(py_thread_ident(&p, 0), 0);
}

/* Since 3.14 the semaphore is the thread's, and the address of the lock's mutex is before it. */
static void test_a_parked_thread(void **state)
{
	struct py_frame f;
	struct py_process p = process(&f);
	struct py_lock lock;

	(void)state;
	p.layout.minor = 14;
	put(LOW + 0xa00, RLOCK + 16);
	assert_true(py_lock_of(&p, LOW + 0xa08, &f, &lock));
	assert_int_equal(lock.object, RLOCK);
	put(LOW + 0xa00, SEMAPHORE);
	assert_false(py_lock_of(&p, LOW + 0xa08, &f, &lock));
}

/* A free-threaded build's objects are larger, and each thread has a copy of the instructions; where
 * these are is known from 3.14 on. */
static void test_layouts_without_the_gil(void **state)
{
	uint64_t word[PY_OFFSETS_BYTES / 8];
	struct py_layout with = {0}, without = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(word) / sizeof(*word); i++)
		word[i] = 64;
	memcpy(word, "xdebugpy", 8);
	word[1] = 0x030e00f0;
	word[2] = 0;
	assert_int_equal(py_layout_find(0x030e0000, (const uint8_t *)word, &with), 0);
	assert_int_equal(with.more, 0);
	assert_int_equal(with.member[PY_CODE_COPIES], PY_ABSENT);
	word[2] = 1;
	assert_int_equal(py_layout_find(0x030e0000, (const uint8_t *)word, &without), 0);
	assert_int_equal(without.more, 16);
	assert_int_equal(without.ascii, with.ascii + 16);
	assert_int_equal(without.compact, with.compact + 16);
	assert_int_equal(without.member[PY_CODE_COPIES], 64);
	word[1] = 0x030d00f0;
	assert_int_equal(py_layout_find(0x030d0000, (const uint8_t *)word, &without), -ENOENT);
	word[2] = 0;
	assert_int_equal(py_layout_find(0x030d0000, (const uint8_t *)word, &with), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_body_of_a_with),
		cmocka_unit_test(test_a_method_that_is_not_bound),
		cmocka_unit_test(test_what_a_thread_waits_for),
		cmocka_unit_test(test_a_parked_thread),
		cmocka_unit_test(test_layouts_without_the_gil),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
