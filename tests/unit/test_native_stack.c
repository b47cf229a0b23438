/* SPDX-License-Identifier: BSD-3-Clause */
/* test_native_stack.c - functions of threads of this process that wait in known places. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/native_stack.h"
#include "common/symbols.h"

/* A build with frame pointers needs a register that syscall() does not save: the third function's
 * caller is unknown there. */
#if defined(__SANITIZE_ADDRESS__)
#define FRAME_POINTERS true
#else
#define FRAME_POINTERS false
#endif

static __thread volatile long sink;

struct waiter {
	pthread_t thread;
	uint32_t tid;
	int ends[2];
	void (*run)(struct waiter *w);
	bool stop;
};

/* Each does something after its call, so that it stays on the stack. Sanitizers have a read() of
 * their own. */
static __attribute__((noinline)) void third_function(struct waiter *w)
{
	char byte;
	long got = syscall(SYS_read, w->ends[0], &byte, 1);

	sink = got;
}

static __attribute__((noinline)) void second_function(struct waiter *w)
{
	unsigned char room[300];

	memset(room, 1, sizeof(room));
	third_function(w);
	sink = room[7];
}

static __attribute__((noinline)) void first_function(struct waiter *w)
{
	second_function(w);
	sink = 1;
}

/* Its frame is found by a register, which nobody knows unless an inner function saved it. */
static __attribute__((noinline)) void function_of_a_size(struct waiter *w)
{
	size_t n = 64 + w->tid % 64;
	unsigned char *room = __builtin_alloca(n);

	memset(room, 1, n);
	second_function(w);
	sink = room[n - 1];
}

static void spin(struct waiter *w)
{
	while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE))
		;
}

static void *run(void *arg)
{
	struct waiter *w = arg;

	__atomic_store_n(&w->tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	w->run(w);
	return NULL;
}

static void begin(struct waiter *w, void (*function)(struct waiter *w))
{
	memset(w, 0, sizeof(*w));
	w->run = function;
	assert_int_equal(pipe(w->ends), 0);
	assert_int_equal(pthread_create(&w->thread, NULL, run, w), 0);
	while (!__atomic_load_n(&w->tid, __ATOMIC_ACQUIRE))
		usleep(1000);
}

static void end(struct waiter *w)
{
	__atomic_store_n(&w->stop, true, __ATOMIC_RELEASE);
	assert_int_equal(write(w->ends[1], "x", 1), 1);
	pthread_join(w->thread, NULL);
	close(w->ends[0]);
	close(w->ends[1]);
}

static void until_the_child_has_ended(struct native *n, uint64_t boot_ns)
{
	for (int i = 0; i < 5000 && n->child; i++) {
		usleep(1000);
		native_turn(n, boot_ns);
	}
	assert_int_equal(n->child, 0);
}

/* A whole round for one thread. */
static void read_once(struct native *n, uint32_t tid, struct native_stack *s)
{
	uint32_t ticket = native_want(n, tid, 0);

	n->credit_ns = NATIVE_BURST_NS;
	assert_int_not_equal(ticket, 0);
	assert_false(native_take(n, ticket, s));
	native_turn(n, 1);
	until_the_child_has_ended(n, 1);
	assert_true(native_take(n, ticket, s));
}

/* Until the thread waits. */
static void read_waiting(struct native *n, const struct waiter *w, struct native_stack *s)
{
	for (int i = 0; i < 100; i++) {
		read_once(n, w->tid, s);
		if (s->known && strstr(s->frame[0], "syscall "))
			return;
	}
	fail_msg("no stack of a thread that waits");
}

/* Of a thread that waits in third_function(); true if the others are known. */
static bool third_is_there(const struct native_stack *s)
{
	assert_string_equal(s->frame[1], "third_function test_native_stack");
	if (!FRAME_POINTERS)
		return true;
	assert_int_equal(s->frames, 3);
	assert_string_equal(s->frame[2], "?");
	return false;
}

static void test_known_functions(void **state)
{
	struct native_stack s;
	struct native n;
	struct waiter w;

	(void)state;
	native_init(&n, getpid());
	begin(&w, first_function);
	read_waiting(&n, &w, &s);
	assert_non_null(strstr(s.frame[0], " libc"));
	if (third_is_there(&s)) {
		assert_string_equal(s.frame[2], "second_function test_native_stack");
		assert_string_equal(s.frame[3], "first_function test_native_stack");
		assert_string_equal(s.frame[4], "run test_native_stack");
		assert_true(s.frames > 5);
		assert_string_not_equal(s.frame[s.frames - 1], "?"); /* up to the thread's first */
	}
	end(&w);
	/* It has ended. */
	read_once(&n, w.tid, &s);
	assert_false(s.known);
	assert_int_equal(s.frames, 0);
	native_release(&n);
}

static void test_a_register_that_is_unknown(void **state)
{
	struct native_stack s;
	struct native n;
	struct waiter w;

	(void)state;
	native_init(&n, getpid());
	begin(&w, function_of_a_size);
	read_waiting(&n, &w, &s);
	if (third_is_there(&s)) {
		assert_string_equal(s.frame[2], "second_function test_native_stack");
		assert_string_equal(s.frame[3], "function_of_a_size test_native_stack");
		if (strcmp(s.frame[4], "?"))
			assert_string_equal(s.frame[4], "run test_native_stack");
		else
			assert_int_equal(s.frames, 5);
	}
	end(&w);
	native_release(&n);
}

static void test_a_thread_that_runs(void **state)
{
	struct native_stack s;
	struct native n;
	struct waiter w;

	(void)state;
	native_init(&n, getpid());
	begin(&w, spin);
	for (int i = 0; i < 5; i++) {
		read_once(&n, w.tid, &s);
		assert_false(s.known && s.frames);
	}
	end(&w);
	native_release(&n);
}

#if defined(__x86_64__)
static void (*made)(struct waiter *w);

static __attribute__((noinline)) void below_made_code(struct waiter *w)
{
	made(w);
	sink = 2;
}

/* Its callers must not be guessed. */
static void test_code_without_a_table(void **state)
{
	/* sub $8, %rsp; movabs $third_function, %rax; call *%rax; add $8, %rsp; ret */
	unsigned char code[] = {0x48, 0x83, 0xec, 8,	0x48, 0xb8, 0,	  0,	0, 0,	0,
				0,    0,    0,	  0xff, 0xd0, 0x48, 0x83, 0xc4, 8, 0xc3};
	void (*third)(struct waiter * w) = third_function;
	struct native_stack s;
	struct native n;
	struct waiter w;
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(page != MAP_FAILED);
	memcpy(code + 6, &third, sizeof(third));
	memcpy(page, code, sizeof(code));
	assert_int_equal(mprotect(page, 4096, PROT_READ | PROT_EXEC), 0);
	*(void **)&made = page;
	native_init(&n, getpid());
	begin(&w, below_made_code);
	read_waiting(&n, &w, &s);
	if (third_is_there(&s)) {
		assert_int_equal(s.frames, 4);
		assert_int_equal(strtoull(s.frame[2], NULL, 16), (uint64_t)(uintptr_t)page + 16);
		assert_string_equal(s.frame[3], "?");
	}
	end(&w);
	native_release(&n);
	munmap(page, 4096);
}
#endif

static bool starts(struct native *n, uint64_t boot_ns)
{
	native_turn(n, boot_ns);
	return n->child != 0;
}

static void test_its_share_of_cpu(void **state)
{
	const uint64_t second = 1000000000;
	struct native_stack s;
	struct native n;
	struct waiter w;

	(void)state;
	native_init(&n, getpid());
	begin(&w, first_function);
	read_waiting(&n, &w, &s);
	assert_in_range(n.charged_ns, 1, NATIVE_BURST_NS); /* of the last child */
	assert_int_equal(n.credit_ns, NATIVE_BURST_NS - n.charged_ns);
	n.credit_ns = 0;
	n.credit_boot_ns = 100 * second;
	assert_int_not_equal(native_want(&n, w.tid, 0), 0);
	assert_false(starts(&n, 100 * second));
	assert_true(starts(&n, 101 * second));
	assert_int_equal(n.credit_ns, second / 100);
	native_release(&n);
	end(&w);
}

/* All at once, and as many as there is room for. */
static void test_a_round(void **state)
{
	uint32_t ticket[NATIVE_ROUND];
	struct native_stack s;
	struct native n;
	struct waiter w;

	(void)state;
	native_init(&n, getpid());
	begin(&w, first_function);
	read_waiting(&n, &w, &s);
	for (size_t i = 0; i < NATIVE_ROUND; i++)
		ticket[i] = native_want(&n, i % 2 ? w.tid : INT32_MAX, 0);
	assert_int_equal(native_want(&n, w.tid, 0), 0);
	n.credit_ns = NATIVE_BURST_NS;
	native_turn(&n, 1);
	assert_int_equal(native_want(&n, w.tid, 0), 0);
	until_the_child_has_ended(&n, 1);
	for (size_t i = 0; i < NATIVE_ROUND; i++) {
		assert_true(native_take(&n, ticket[i], &s));
		assert_int_equal(s.known, i % 2);
		if (s.known)
			third_is_there(&s);
	}
	end(&w);
	native_release(&n);
}

/* As if the file server behind the libraries hung. */
static void test_a_child_that_hangs(void **state)
{
	const uint64_t second = 1000000000;
	struct native_stack s;
	struct native n;
	struct waiter w;
	uint32_t ticket;
	pid_t child;

	(void)state;
	native_init(&n, getpid());
	begin(&w, first_function);
	ticket = native_want(&n, w.tid, 0);
	native_turn(&n, 100 * second);
	child = n.child;
	assert_true(child > 0);
	assert_int_equal(kill(child, SIGSTOP), 0);
	while (read(n.from, &n.result[0], sizeof(n.result[0])) > 0)
		; /* in case it was faster */
	native_turn(&n, (100 + NATIVE_ROUND_SECONDS) * second);
	assert_int_equal(n.child, child);
	until_the_child_has_ended(&n, (102 + NATIVE_ROUND_SECONDS) * second);
	assert_true(native_take(&n, ticket, &s));
	assert_false(s.known);
	assert_in_range(n.credit_ns, 0,
			second / 50); /* it used up all, and two seconds have passed */
	end(&w);
}

/* Locks and connections of the agent end with it. */
static void test_a_child_has_no_descriptors(void **state)
{
	struct native n;
	struct waiter w;
	char path[64];
	ssize_t got;
	char to[64];

	(void)state;
	native_init(&n, getpid());
	begin(&w, first_function);
	for (int i = 0; i < 8; i++)
		native_want(&n, w.tid, 0);
	native_turn(&n, 1);
	for (int i = 0; i < 2000; i++) { /* until it has closed them */
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", n.child, w.ends[0]);
		got = readlink(path, to, sizeof(to));
		if (got < 0 && kill(n.child, 0) == 0)
			break;
		usleep(500);
	}
	assert_true(got < 0);
	end(&w);
	native_release(&n);
}

static void test_names_of_cpp(void **state)
{
	char to[60];

	(void)state;
	assert_string_equal(symbols_plain("read", to, sizeof(to)), "read");
	assert_string_equal(symbols_plain("_ZN5XrdCl4File4OpenERKSs", to, sizeof(to)),
			    "XrdCl::File::Open");
	assert_string_equal(symbols_plain("_ZN3FooclEv", to, sizeof(to)), "Foo::operator()()");
	assert_string_equal(symbols_plain("_ZN12_GLOBAL__N_13runEi", to, sizeof(to)),
			    "(anonymous namespace)::run(int)");
	assert_string_equal(symbols_plain("_Z1fIiEvT_", to, sizeof(to)), "void f<int>");
	assert_string_equal(symbols_plain("_Znonsense", to, sizeof(to)), "_Znonsense");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_functions),
		cmocka_unit_test(test_a_register_that_is_unknown),
		cmocka_unit_test(test_a_thread_that_runs),
#if defined(__x86_64__)
		cmocka_unit_test(test_code_without_a_table),
#endif
		cmocka_unit_test(test_its_share_of_cpu),
		cmocka_unit_test(test_a_round),
		cmocka_unit_test(test_a_child_that_hangs),
		cmocka_unit_test(test_a_child_has_no_descriptors),
		cmocka_unit_test(test_names_of_cpp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
