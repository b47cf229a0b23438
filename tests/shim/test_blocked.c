/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_blocked.c - records of long waits: their contents, what is not counted while libunwind
 * works, a full table, signals, and libraries and children that come and go meanwhile.
 */
#include "harness.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/count/blocked.h"
#include "shim/count/byte_sample.h"
#include "shim/libc/real.h"
#include "shim/libc/sys.h"

#define NS_PER_MS 1000000ull

static void free_records(void)
{
	for (uint32_t i = 0; i < CREMA_SHM_STACKS; i++) {
		uint32_t ready = 2;

		__atomic_compare_exchange_n(&crema_shm->stack[i].state, &ready, 0, 0,
					    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	}
}

static uint32_t records(const struct crema_stack **last)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < CREMA_SHM_STACKS; i++) {
		if (crema_shm->stack[i].state != 2)
			continue;
		*last = &crema_shm->stack[i];
		n++;
	}
	return n;
}

__attribute__((noinline)) static int sleeper(long ms)
{
	struct timespec t = {0, ms * 1000000};
	int r = nanosleep(&t, NULL);

	__asm__ volatile("" ::: "memory"); /* no tail call: our frame remains */
	return r;
}

/* The machine code of small functions in this file is shorter than this. */
static int is_in(uint64_t address, int (*function)(long))
{
	return address - (uint64_t)(uintptr_t)function < 256;
}

static uint32_t walk(struct crema_py_frame *frame, uint32_t most, uint32_t *cut)
{
	assert_true(most > 1);
	*cut = 1;
	frame[0] = (struct crema_py_frame){0x1230, 4, 5};
	frame[1] = (struct crema_py_frame){0x4560, 7, 8};
	return 2;
}

/* The record names the row of the Python stack. */
static void a_long_wait_has_its_python_frames(void **state)
{
	struct harness_task h = harness_begin();
	const struct crema_stack *r = NULL;
	uint32_t at = 0;

	(void)state;
	free_records();
	byte_sample_walk = walk;
	sleeper(3);
	byte_sample_walk = NULL;
	assert_int_equal(records(&r), 1);
	while (at < CREMA_SHM_BYTE_STACKS && crema_shm->byte_stack_hash[at] != r->python)
		at++;
	assert_in_range(at, 0, CREMA_SHM_BYTE_STACKS - 1);
	assert_true(r->python);
	assert_int_equal(crema_shm->byte_stack[at].state, 2);
	assert_int_equal(crema_shm->byte_stack[at].wait, CREMA_T_sleep + 1);
	assert_int_equal(crema_shm->byte_stack[at].waits, 1);
	assert_int_equal(crema_shm->byte_stack[at].waited_ns, r->waited_ns);
	assert_int_equal(crema_shm->byte_stack[at].depth, 2);
	assert_int_equal(crema_shm->byte_stack[at].cut, 1);
	assert_int_equal(crema_shm->byte_stack[at].frame[1].code, 0x4560);
	free_records();
	sleeper(3); /* without an interpreter */
	assert_int_equal(records(&r), 1);
	assert_int_equal(r->python, 0);
	free_records();
	harness_end(&h);
	harness_free(&h);
}

static void a_long_wait_leaves_its_stack(void **state)
{
	struct harness_task h = harness_begin();
	const struct crema_stack *r = NULL;
	uint64_t before = crema_shm->blocked.recorded;
	int found = 0;

	(void)state;
	free_records();
	errno = EDOM;
	assert_int_equal(sleeper(3), 0);
	assert_int_equal(errno, EDOM);
	assert_int_equal(records(&r), 1);
	assert_int_equal(r->wait, CREMA_T_sleep);
	assert_in_range(r->waited_ns, 2 * NS_PER_MS, 1000 * NS_PER_MS);
	assert_int_equal(r->number, before);
	assert_int_equal(r->attempt, task_slot(h.owner)->attempt);
	assert_int_equal(r->tid, (uint32_t)gettid());
	for (uint32_t i = 0; i < r->depth; i++)
		found += is_in(r->address[i], sleeper);
	assert_int_equal(found, 1);
	free_records();
	harness_end(&h);
	harness_free(&h);
}

static void *write_late(void *end)
{
	sleeper(8);
	assert_int_equal(write(*(int *)end, "x", 1), 1);
	return NULL;
}

/* Reads wait, too: for the other end of a pipe. */
static void a_slow_read_leaves_its_stack(void **state)
{
	struct harness_task h = harness_begin();
	struct crema_blocked before = crema_shm->blocked;
	const struct crema_stack *r = NULL;
	pthread_t writer;
	int ends[2];
	char byte;

	(void)state;
	free_records();
	assert_int_equal(pipe(ends), 0);
	pthread_create(&writer, NULL, write_late, &ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(crema_shm->blocked.calls[CREMA_T_lock_wait],
			 before.calls[CREMA_T_lock_wait] + 1);
	assert_in_range(crema_shm->blocked.ns[CREMA_T_lock_wait] - before.ns[CREMA_T_lock_wait],
			4 * NS_PER_MS, 1000 * NS_PER_MS);
	for (uint32_t i = 0; i < CREMA_SHM_STACKS; i++)
		if (crema_shm->stack[i].state == 2 && crema_shm->stack[i].tid == (uint32_t)gettid())
			r = &crema_shm->stack[i];
	assert_non_null(r);
	assert_int_equal(r->wait, CREMA_T_lock_wait);
	assert_int_equal(r->on, CREMA_ON_OTHER);
	pthread_join(writer, NULL);
	close(ends[0]);
	close(ends[1]);
	free_records();
	harness_end(&h);
	harness_free(&h);
}

/* For a socket it names the peer. */
static void a_slow_answer_names_its_server(void **state)
{
	const struct crema_stack *r = NULL;
	struct sockaddr_in a;
	socklen_t size = sizeof(a);
	int client, server;
	struct harness_task h;
	pthread_t writer;
	char byte;

	(void)state;
	harness_connect(&client, &server);
	assert_int_equal(getsockname(server, (struct sockaddr *)&a, &size), 0);
	h = harness_begin();
	free_records();
	pthread_create(&writer, NULL, write_late, &server);
	assert_int_equal(recv(client, &byte, 1, 0), 1);
	for (uint32_t i = 0; i < CREMA_SHM_STACKS; i++)
		if (crema_shm->stack[i].state == 2 && crema_shm->stack[i].tid == (uint32_t)gettid())
			r = &crema_shm->stack[i];
	assert_non_null(r);
	assert_int_equal(r->wait, CREMA_T_network_wait);
	assert_int_equal(r->on, CREMA_ON_SOCKET);
	assert_int_equal(r->peer_bytes, size);
	assert_memory_equal(r->peer, &a, size);
	pthread_join(writer, NULL);
	close(client);
	close(server);
	free_records();
	harness_end(&h);
	harness_free(&h);
}

/* A resolver that queries a server over a socket and sleeps before it retries. */
static int slow_resolver(const char *host, const char *service, const struct addrinfo *hints,
			 struct addrinfo **out)
{
	struct pollfd none = {.fd = socket(AF_INET, SOCK_DGRAM, 0), .events = POLLIN};

	(void)host, (void)service, (void)hints;
	*out = NULL;
	poll(&none, 1, 8);
	close(none.fd);
	sleeper(8);
	errno = EDOM;
	return EAI_AGAIN;
}

/* The wait counts once, as the network's, and names the host. */
static void a_slow_lookup_names_its_host(void **state)
{
	int (*real_one)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
	uint64_t before = crema_shm->blocked.calls[CREMA_T_sleep], start, took;
	struct addrinfo *found = NULL;
	const struct crema_stack *r = NULL;
	struct harness_task h;
	struct crema_task *t;

	(void)state;
	real_resolve();
	real_one = real.getaddrinfo;
	real.getaddrinfo = slow_resolver;
	h = harness_begin();
	free_records();
	start = harness_now_ns();
	assert_int_equal(getaddrinfo("db.example", "80", NULL, &found), EAI_AGAIN);
	took = harness_now_ns() - start;
	assert_int_equal(errno, EDOM);
	real.getaddrinfo = real_one;
	assert_int_equal(records(&r), 1);
	assert_int_equal(r->wait, CREMA_T_network_wait);
	assert_int_equal(r->on, CREMA_ON_HOST);
	assert_string_equal(arena_text(r->file), "db.example");
	assert_int_equal(crema_shm->blocked.calls[CREMA_T_sleep], before);
	free_records();
	assert_int_equal(getaddrinfo("127.0.0.1", NULL, NULL, &found), 0);
	freeaddrinfo(found);
	sleeper(2);
	t = harness_end(&h);
	assert_int_equal(t->own.count[CREMA_C_lookup_calls], 2);
	assert_in_range(t->own.count[CREMA_C_lookup_ns], took - took / 4, took + 100 * NS_PER_MS);
	assert_in_range(t->own.time[CREMA_T_network_wait], 8 * NS_PER_MS,
			t->own.count[CREMA_C_lookup_ns]);
	/* afterwards the thread is the task's again */
	assert_in_range(t->own.time[CREMA_T_sleep], 1 * NS_PER_MS, 200 * NS_PER_MS);
	free_records();
	harness_free(&h);
}

static void short_waits_and_waits_for_nobody_leave_none(void **state)
{
	struct crema_blocked before = crema_shm->blocked;
	struct timespec t = {0, 100000};
	const struct crema_stack *r;
	struct harness_task h;

	(void)state;
	sleeper(3);
	h = harness_begin();
	for (int i = 0; i < 10; i++)
		nanosleep(&t, NULL);
	/* Under load a short wait may become long; then it is counted as long. */
	assert_int_equal(records(&r),
			 crema_shm->blocked.calls[CREMA_T_sleep] - before.calls[CREMA_T_sleep]);
	free_records();
	harness_end(&h);
	harness_free(&h);
}

/* libunwind probes addresses by writing to its own pipe and reading it. */
static void the_unwinders_own_calls_do_not_count(void **state)
{
	struct harness_task h = harness_begin();
	struct crema_thread *t = thread_self();
	char c = 'x';
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	blocked_unwinding = 1;
	thread_block = NULL;
	assert_int_equal(write(ends[1], &c, 1) + read(ends[0], &c, 1), 2);
	thread_block = t;
	blocked_unwinding = 0;
	assert_int_equal(t->seg.count[CREMA_C_other_read_calls], 0);
	assert_int_equal(write(ends[1], &c, 1) + read(ends[0], &c, 1), 2);
	assert_int_equal(t->seg.count[CREMA_C_other_read_calls], 1);
	harness_end(&h);
	harness_free(&h);
	close(ends[0]);
	close(ends[1]);
}

static void take_one(void)
{
	static const struct blocked_on nothing;

	blocked_take(thread_self(), CREMA_T_lock_wait, NS_PER_MS, &nothing);
	free_records();
}

enum { CODE_BYTES = 1 << 16, CODE_EACH = 16 };

/* Memory for functions that libunwind does not know. */
static char *code_room(void)
{
	char *p = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

/* A stack through a new function at this place: libunwind queries the loader without success, and
 * probes addresses. */
static void take_one_through(char *place)
{
	static const unsigned char code[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd7,
					     0x48, 0x83, 0xc4, 0x08, 0xc3}; /* calls its argument */

	memcpy(place, code, sizeof(code));
	((void (*)(void (*)(void)))(void *)place)(take_one);
}

/* A program closes all descriptors that it does not know and opens other files. */
static void a_pipe_that_became_a_file_is_not_touched(void **state)
{
	const char *path = harness_file("innocent", 4096);
	struct harness_task h = harness_begin();
	const struct crema_stack *r = NULL;
	char *code = code_room();
	int fd = open(path, O_RDWR);

	(void)state;
	assert_true(blocked_pipe[0] >= 0 && blocked_pipe[1] >= 0);
	free_records();
	assert_int_equal(dup2(fd, blocked_pipe[0]), blocked_pipe[0]);
	assert_int_equal(dup2(fd, blocked_pipe[1]), blocked_pipe[1]);
	for (int i = 0; i < CODE_BYTES; i += CODE_EACH)
		take_one_through(code + i);
	munmap(code, CODE_BYTES);
	free_records(); /* on a busy machine some of these took long enough to be recorded */
	sleeper(3);
	assert_int_equal(records(&r), 1);
	assert_int_equal(r->depth, 0);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
	assert_int_equal(lseek(blocked_pipe[1], 0, SEEK_END), 4096);
	harness_end(&h);
	harness_free(&h);
	unlink(path);
}

/* A thread that loses its core before a sleep may find it over: the rest of the wait is short. */
static void a_full_table_counts_what_it_leaves_out(void **state)
{
	struct crema_blocked before = crema_shm->blocked;
	const uint64_t wanted = CREMA_SHM_STACKS + 12;
	struct harness_task h = harness_begin();
	const uint64_t *slept = &thread_self()->seg.time[CREMA_T_sleep];
	uint64_t calls = 0, ns = 0;
	const struct crema_stack *r;

	(void)state;
	free_records();
	for (int i = 0; calls < wanted && i < 1000; i++) {
		uint64_t so_far = *slept;

		sleeper(2);
		if (*slept - so_far < NS_PER_MS)
			continue;
		calls++;
		ns += *slept - so_far;
	}
	assert_int_equal(calls, wanted);
	assert_int_equal(records(&r), CREMA_SHM_STACKS);
	assert_int_equal(crema_shm->blocked.recorded - before.recorded, CREMA_SHM_STACKS);
	assert_int_equal(crema_shm->blocked.calls[CREMA_T_sleep] - before.calls[CREMA_T_sleep],
			 calls);
	assert_int_equal(crema_shm->blocked.ns[CREMA_T_sleep] - before.ns[CREMA_T_sleep], ns);
	harness_end(&h);
	free_records();
	harness_free(&h);
}

static volatile int handled;

static void handler(int signal)
{
	struct timespec t = {0, 3000000};

	(void)signal;
	nanosleep(&t, NULL);
	handled++;
}

/* A handler that waits, at any point. */
static void waits_in_signal_handlers(void **state)
{
	struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
	struct itimerval every = {{0, 5000}, {0, 5000}}, off = {{0, 0}, {0, 0}};
	struct harness_task h = harness_begin();
	static const struct blocked_on nothing;
	uint64_t before = crema_shm->blocked.calls[CREMA_T_sleep];

	(void)state;
	handled = 0;
	sigaction(SIGALRM, &act, &old);
	setitimer(ITIMER_REAL, &every, NULL);
	while (handled < 100) {
		blocked_take(thread_self(), CREMA_T_lock_wait, NS_PER_MS, &nothing);
		free_records();
	}
	setitimer(ITIMER_REAL, &off, NULL);
	sigaction(SIGALRM, &old, NULL);
	/* Without the time off its core a wait may be short. */
	assert_true(crema_shm->blocked.calls[CREMA_T_sleep] - before >= 50);
	harness_end(&h);
	harness_free(&h);
}

static volatile int stop;

static void *take_stacks(void *arg)
{
	struct harness_task h = harness_begin();
	static const struct blocked_on nothing;
	uint64_t *taken = arg;

	while (!stop) {
		blocked_take(thread_self(), CREMA_T_lock_wait, NS_PER_MS, &nothing);
		free_records();
		++*taken;
	}
	harness_end(&h);
	harness_free(&h);
	return NULL;
}

static void *load_and_unload(void *arg)
{
	uint64_t *loads = arg;

	while (!stop) {
		void *library = dlopen("libresolv.so.2", RTLD_NOW);

		if (library && !dlclose(library))
			++*loads;
	}
	return NULL;
}

static void *take_new_stacks(void *arg)
{
	struct harness_task h = harness_begin();
	uint64_t *taken = arg;

	while (!stop) {
		char *code = code_room();

		for (int i = 0; i < CODE_BYTES && !stop; i += CODE_EACH, ++*taken)
			take_one_through(code + i);
		munmap(code, CODE_BYTES);
	}
	harness_end(&h);
	harness_free(&h);
	return NULL;
}

static void run_for(uint64_t ms, void *(*one)(void *), void *(*other)(void *),
		    void (*meanwhile)(void))
{
	uint64_t done[8] = {0}, end = harness_now_ns() + ms * NS_PER_MS;
	pthread_t threads[8];

	stop = 0;
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, i < 4 ? one : other, &done[i]),
				 0);
	while (harness_now_ns() < end)
		meanwhile();
	stop = 1;
	for (int i = 0; i < 8; i++) {
		pthread_join(threads[i], NULL);
		assert_true(done[i] > 0);
	}
	free_records();
}

static void a_moment(void)
{
	usleep(1000);
}

/* It must not hang on a lock that was held at the fork. */
static void child(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(20);
		_exit(dlopen("libresolv.so.2", RTLD_NOW) == NULL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void libraries_come_and_go_meanwhile(void **state)
{
	(void)state;
	run_for(1000, take_stacks, load_and_unload, a_moment);
}

static void children_are_well(void **state)
{
	(void)state;
	run_for(1000, take_new_stacks, take_new_stacks, child);
}

/* Python waits for its lock in steps that time out: together they are one wait, unless something
 * comes in between. */
static void waits_for_the_interpreter_add_up(void **state)
{
	struct harness_task h = harness_begin();
	struct crema_thread *t = thread_self();
	uint64_t *ns = &crema_shm->blocked.ns[CREMA_T_gil_wait], before = *ns;
	uint64_t *calls = &crema_shm->blocked.calls[CREMA_T_gil_wait], called = *calls;
	struct timespec gap = {0, 3000000};
	uint64_t start;

	(void)state;
	do { /* again if the thread lost its core in between: that is a gap, too */
		start = ticks();
		for (int i = 0; i < 3; i++)
			blocked_saw_gil(t, NS_PER_MS / 3, ticks(), 1);
		assert_int_equal(*calls, called);
		blocked_saw_gil(t, NS_PER_MS / 4, ticks(), 0);
	} while (*calls == called && ticks_ns(ticks() - start) >= NS_PER_MS);
	assert_int_equal(*calls, called + 1);
	assert_int_equal(*ns, before + 3 * (NS_PER_MS / 3) + NS_PER_MS / 4);
	/* it had the lock in between, or did something else */
	blocked_saw_gil(t, NS_PER_MS * 3 / 4, ticks(), 0);
	assert_int_equal(*calls, called + 1);
	blocked_saw_gil(t, NS_PER_MS * 3 / 4, ticks(), 1);
	nanosleep(&gap, NULL);
	blocked_saw_gil(t, NS_PER_MS * 3 / 4, ticks(), 0);
	assert_int_equal(*calls, called + 1);
	harness_end(&h);
	harness_free(&h);
	free_records();
}

static int begin(void **state)
{
	(void)state;
	setenv("CREMA_BLOCKED_MS", "1", 1);
	harness_arm();
	blocked_open();
	return blocked_threshold_ns == NS_PER_MS ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_wait_leaves_its_stack),
		cmocka_unit_test(a_long_wait_has_its_python_frames),
		cmocka_unit_test(waits_for_the_interpreter_add_up),
		cmocka_unit_test(a_slow_read_leaves_its_stack),
		cmocka_unit_test(a_slow_answer_names_its_server),
		cmocka_unit_test(a_slow_lookup_names_its_host),
		cmocka_unit_test(short_waits_and_waits_for_nobody_leave_none),
		cmocka_unit_test(the_unwinders_own_calls_do_not_count),
		cmocka_unit_test(a_full_table_counts_what_it_leaves_out),
		cmocka_unit_test(waits_in_signal_handlers),
		cmocka_unit_test(libraries_come_and_go_meanwhile),
		cmocka_unit_test(children_are_well),
		/* the last test: no more stacks after it */
		cmocka_unit_test(a_pipe_that_became_a_file_is_not_touched),
	};

	if (!dlopen("libunwind.so.8", RTLD_LOCAL | RTLD_NOW)) {
		fprintf(stderr, "libunwind.so.8 is not there: install libunwind8\n");
		return 1;
	}
	return cmocka_run_group_tests(tests, begin, NULL);
}
