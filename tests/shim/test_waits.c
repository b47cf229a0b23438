/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_waits.c - each way to wait has its class, in a task's own thread and in a pool's, and lasts
 * as long as the kernel's clocks of the thread allow: neither on a core nor queued for one.
 */
#include "clocks.h"
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ull
enum { NAP = 40 };

static int pipes[2], ours, theirs, events, locked[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static char byte;
static int begins; /* the wait that another thread will end */

static void nap(void)
{
	struct timespec t = {0, NAP * MS};

	syscall(SYS_nanosleep, &t, NULL);
}

static struct timespec at_most(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_nsec += NAP * (long)MS;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static void by_nanosleep(void)
{
	struct timespec t = {0, NAP * MS};

	assert_int_equal(nanosleep(&t, NULL), 0);
}

static void by_usleep(void)
{
	assert_int_equal(usleep(NAP * 1000), 0);
}

static void by_clock_nanosleep(void)
{
	struct timespec t = at_most(CLOCK_MONOTONIC);

	assert_int_equal(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL), 0);
}

static void by_select_of_nothing(void)
{
	struct timeval t = {0, NAP * 1000};

	assert_int_equal(select(0, NULL, NULL, NULL, &t), 0);
}

static void by_poll_of_nothing(void)
{
	assert_int_equal(poll(NULL, 0, NAP), 0);
}

static void by_condition(void)
{
	struct timespec t = at_most(CLOCK_REALTIME);

	pthread_mutex_lock(&mutex);
	pthread_cond_timedwait(&cond, &mutex, &t);
	pthread_mutex_unlock(&mutex);
}

static void by_semaphore(void)
{
	struct timespec t = at_most(CLOCK_REALTIME);

	assert_int_equal(sem_timedwait(&sem, &t), -1);
}

/* As Rust's and Abseil's locks do it; the value is not the expected one: returns at once. */
static void by_futex(void)
{
	static int word;
	struct timespec t = {0, NAP * MS};

	assert_int_equal(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0), -1);
	assert_int_equal(errno, ETIMEDOUT);
}

static void by_futex_of_bits(void)
{
	static int word;
	struct timespec t = at_most(CLOCK_REALTIME);

	assert_int_equal(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME,
				 0, &t, NULL, FUTEX_BITSET_MATCH_ANY),
			 -1);
	assert_int_equal(errno, ETIMEDOUT);
}

static void by_pipe(void)
{
	assert_int_equal(read(pipes[0], &byte, 1), 1);
}

static void by_poll_of_a_pipe(void)
{
	struct pollfd p = {pipes[0], POLLIN, 0};

	assert_int_equal(poll(&p, 1, -1), 1);
	assert_int_equal(syscall(SYS_read, pipes[0], &byte, 1), 1);
}

static void by_a_files_lock(void)
{
	assert_int_equal(flock(locked[0], LOCK_EX), 0);
	flock(locked[0], LOCK_UN);
}

static void *naps(void *unused)
{
	nap();
	return unused;
}

static void by_join(void)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, naps, NULL), 0);
	pthread_join(thread, NULL);
}

static void by_recv(void)
{
	assert_int_equal(recv(ours, &byte, 1, 0), 1);
}

static void by_read_of_a_socket(void)
{
	assert_int_equal(read(ours, &byte, 1), 1);
}

static void by_poll_of_a_socket(void)
{
	struct pollfd p = {ours, POLLIN, 0};

	assert_int_equal(poll(&p, 1, -1), 1);
	by_recv();
}

static void by_select_of_a_socket(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(ours, &set);
	assert_int_equal(select(ours + 1, &set, NULL, NULL, NULL), 1);
	by_recv();
}

static void by_epoll(void)
{
	struct epoll_event e;

	assert_int_equal(epoll_wait(events, &e, 1, -1), 1);
	by_recv();
}

static const struct way {
	const char *name;
	void (*wait)(void);
	int class;
	enum { ITSELF, PIPE, SOCKET, LOCK } ends_by;
} ways[] = {
	{"nanosleep", by_nanosleep, CREMA_T_sleep, ITSELF},
	{"usleep", by_usleep, CREMA_T_sleep, ITSELF},
	{"clock_nanosleep", by_clock_nanosleep, CREMA_T_sleep, ITSELF},
	{"select of nothing", by_select_of_nothing, CREMA_T_sleep, ITSELF},
	{"poll of nothing", by_poll_of_nothing, CREMA_T_sleep, ITSELF},
	{"condition", by_condition, CREMA_T_lock_wait, ITSELF},
	{"semaphore", by_semaphore, CREMA_T_lock_wait, ITSELF},
	{"futex", by_futex, CREMA_T_lock_wait, ITSELF},
	{"futex of bits", by_futex_of_bits, CREMA_T_lock_wait, ITSELF},
	{"join", by_join, CREMA_T_lock_wait, ITSELF},
	{"pipe", by_pipe, CREMA_T_lock_wait, PIPE},
	{"poll of a pipe", by_poll_of_a_pipe, CREMA_T_lock_wait, PIPE},
	{"a file's lock", by_a_files_lock, CREMA_T_lock_wait, LOCK},
	{"recv", by_recv, CREMA_T_network_wait, SOCKET},
	{"read of a socket", by_read_of_a_socket, CREMA_T_network_wait, SOCKET},
	{"poll of a socket", by_poll_of_a_socket, CREMA_T_network_wait, SOCKET},
	{"select of a socket", by_select_of_a_socket, CREMA_T_network_wait, SOCKET},
	{"epoll", by_epoll, CREMA_T_network_wait, SOCKET},
};

/* Ends another thread's wait, with calls that the shim does not see. */
static void *end_it(void *arg)
{
	const struct way *w = arg;
	struct timespec moment = {0, MS / 10};

	while (!__atomic_load_n(&begins, __ATOMIC_ACQUIRE))
		syscall(SYS_nanosleep, &moment, NULL);
	nap();
	if (w->ends_by == LOCK)
		assert_int_equal(syscall(SYS_flock, locked[1], LOCK_UN), 0);
	else
		assert_int_equal(syscall(SYS_write, w->ends_by == PIPE ? pipes[1] : theirs, "x", 1),
				 1);
	return NULL;
}

struct waited {
	const struct way *way;
	uint32_t pool_of;
	struct truth truth;
};

static void *wait_once(void *arg)
{
	struct waited *w = arg;
	struct owner before;
	struct look start;

	if (w->pool_of)
		before = segment_begin(w->pool_of, 1);
	start = look();
	__atomic_store_n(&begins, 1, __ATOMIC_RELEASE);
	w->way->wait();
	w->truth = blocked_since(&start);
	if (w->pool_of)
		segment_end(before);
	return NULL;
}

static void check(const struct way *w, const uint64_t *time, const struct truth *k, const char *who)
{
	uint64_t least = k->known_ns - k->known_ns / 50 - MS, most = k->known_ns + k->known_ns / 50;

	print_message("%s, %s: %.2f of %.2f ms\n", w->name, who, (double)time[w->class] / 1e6,
		      (double)k->known_ns / 1e6);
	assert_true(k->known_ns + k->delay_ns >= NAP * MS * 9 / 10);
	assert_true(time[w->class] + k->stolen_ns >= least && time[w->class] <= most);
	for (int i = 0; i < CREMA_TIMES; i++)
		if (i != CREMA_T_cpu && i != CREMA_T_runqueue && i != w->class)
			assert_true(time[i] < MS);
}

static void wait_in(const struct way *way, int in_pool)
{
	struct waited w = {way, 0, {0}};
	pthread_t other, thread;
	struct harness_task h;
	struct crema_task *t;

	begins = 0;
	if (way->ends_by == LOCK)
		assert_int_equal(syscall(SYS_flock, locked[1], LOCK_EX), 0);
	if (way->ends_by != ITSELF)
		assert_int_equal(pthread_create(&other, NULL, end_it, (void *)(uintptr_t)way), 0);
	h = harness_begin();
	if (in_pool) {
		w.pool_of = h.owner;
		assert_int_equal(pthread_create(&thread, NULL, wait_once, &w), 0);
		pthread_join(thread, NULL);
	} else {
		wait_once(&w);
	}
	t = harness_end(&h);
	if (way->ends_by != ITSELF)
		pthread_join(other, NULL);
	check(way, in_pool ? t->pool_time : t->own.time, &w.truth, in_pool ? "pool" : "own");
	harness_free(&h);
}

static void waits_of_a_task_have_their_class(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		wait_in(&ways[i], 0);
}

static void waits_of_a_pool_have_their_class(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		wait_in(&ways[i], 1);
}

static int arm(void **state)
{
	struct epoll_event e = {.events = EPOLLIN};
	const char *file = harness_file("locked", 10);

	(void)state;
	harness_arm();
	harness_connect(&ours, &theirs);
	assert_int_equal(pipe(pipes), 0);
	events = epoll_create1(0);
	assert_int_equal(epoll_ctl(events, EPOLL_CTL_ADD, ours, &e), 0);
	sem_init(&sem, 0, 0);
	for (int i = 0; i < 2; i++)
		locked[i] = open(file, O_RDWR);
	return unlink(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_of_a_task_have_their_class),
		cmocka_unit_test(waits_of_a_pool_have_their_class),
	};

	return cmocka_run_group_tests_name("shim waits", tests, arm, NULL);
}
