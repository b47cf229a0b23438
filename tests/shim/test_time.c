/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_time.c - each time class gets the time that is known to be spent in it: at least 95 % in it,
 * at most 2 % of it in any other; the CPU class equals the thread's clock.
 *
 * On a shared machine a spinning thread also waits for a core; that is correctly run queue time, so
 * programs that must not be disturbed compare with the kernel's value for it.
 */
#include "harness.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "accuracy.h"
#include "shim/count/op.h"
#include "shim/libc/sys.h"

#define MS 1000000ull

static void spin_is_cpu(void **state)
{
	struct harness_task h = harness_begin();
	struct truth known = {.known_ns = 200 * MS};
	struct crema_task *t;

	(void)state;
	harness_spin(known.known_ns);
	t = harness_end(&h);
	share_is(t, CREMA_T_cpu, &known, "spin | until its thread CPU clock says 200 ms");
	others_are_small(t, CREMA_T_cpu, CREMA_T_runqueue, &known);
	harness_free(&h);
}

static volatile int stop;

static void *spinner(void *arg)
{
	(void)arg;
	harness_pin(0);
	while (!stop)
		;
	return NULL;
}

static void two_spinners_on_one_core_wait_for_it(void **state)
{
	struct crema_task *t;
	struct harness_task h;
	cpu_set_t all;
	pthread_t other;
	struct look before;
	struct truth known;

	(void)state;
	sched_getaffinity(0, sizeof(all), &all);
	stop = 0;
	assert_int_equal(pthread_create(&other, NULL, spinner, NULL), 0);
	harness_pin(0);
	h = harness_begin();
	before = look();
	harness_spin(150 * MS);
	known = blocked_since(&before);
	known.known_ns += known.delay_ns;
	t = harness_end(&h);
	stop = 1;
	pthread_join(other, NULL);
	sched_setaffinity(0, sizeof(all), &all);
	/* the rest was waiting for the core: nothing else happens here */
	assert_true(known.known_ns > 50 * MS);
	share_is(t, CREMA_T_runqueue, &known,
		 "two spinners on one core | its elapsed time less its CPU clock");
	others_are_small(t, CREMA_T_runqueue, CREMA_T_cpu, &known);
	harness_free(&h);
}

/* A lock inside the address range that the shim takes for the interpreter's runtime. */
static struct {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	int locked;
} gil = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 1};

static void *holder(void *arg)
{
	(void)arg;
	usleep(150000);
	pthread_mutex_lock(&gil.mutex);
	gil.locked = 0;
	pthread_cond_signal(&gil.cond);
	pthread_mutex_unlock(&gil.mutex);
	return NULL;
}

/* As take_gil does: repeated waits of 5 ms. */
static struct truth take_gil(void)
{
	struct look before = look();

	pthread_mutex_lock(&gil.mutex);
	while (gil.locked) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 5 * 1000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_sec++;
			until.tv_nsec -= 1000000000;
		}
		pthread_cond_timedwait(&gil.cond, &gil.mutex, &until);
	}
	gil.locked = 1;
	pthread_mutex_unlock(&gil.mutex);
	return blocked_since(&before);
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void *mutex_holder(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&held);
	usleep(150000);
	pthread_mutex_unlock(&held);
	return NULL;
}

static void waits_in_the_runtime_are_gil(void **state)
{
	struct crema_task *t;
	struct harness_task h;
	pthread_t other;
	struct truth known;

	(void)state;
	wait_set_runtime(&gil, sizeof(gil));
	assert_int_equal(pthread_create(&other, NULL, holder, NULL), 0);
	h = harness_begin();
	known = take_gil();
	t = harness_end(&h);
	pthread_join(other, NULL);
	share_is(t, CREMA_T_gil_wait, &known,
		 "GIL fight | its elapsed time less its CPU clock and the kernel's run delay");
	others_are_small(t, CREMA_T_gil_wait, CREMA_T_runqueue, &known);
	harness_free(&h);
}

static void other_waits_are_locks(void **state)
{
	struct crema_task *t;
	struct harness_task h;
	pthread_t other;
	struct truth known;

	(void)state;
	wait_set_runtime(NULL, 0);
	gil.locked = 1;
	assert_int_equal(pthread_create(&other, NULL, holder, NULL), 0);
	h = harness_begin();
	known = take_gil();
	t = harness_end(&h);
	pthread_join(other, NULL);
	share_is(t, CREMA_T_lock_wait, &known,
		 "lock | its elapsed time less its CPU clock and the kernel's run delay");
	assert_int_equal(t->own.time[CREMA_T_gil_wait], 0);
	others_are_small(t, CREMA_T_lock_wait, CREMA_T_runqueue, &known);
	harness_free(&h);
}

static void a_held_mutex_is_a_lock(void **state)
{
	struct crema_task *t;
	struct look before;
	struct harness_task h;
	pthread_t other;
	struct truth known;

	(void)state;
	assert_int_equal(pthread_create(&other, NULL, mutex_holder, NULL), 0);
	usleep(20000); /* it holds the mutex by now */
	h = harness_begin();
	before = look();
	pthread_mutex_lock(&held);
	known = blocked_since(&before);
	pthread_mutex_unlock(&held);
	t = harness_end(&h);
	pthread_join(other, NULL);
	assert_true(known.known_ns > 50 * MS);
	share_is(t, CREMA_T_lock_wait, &known,
		 "mutex | its elapsed time less its CPU clock and the kernel's run delay");
	others_are_small(t, CREMA_T_lock_wait, CREMA_T_runqueue, &known);
	harness_free(&h);
}

/* Until it is on disk; if that takes no time (tmpfs) there is nothing to measure. */
static void a_synced_file_is_storage(void **state)
{
	int fd = open(harness_file("synced", 10), O_RDWR);
	char data[4096] = {1};

	(void)state;
	for (int way = 0; way < 2; way++) {
		struct harness_task h = harness_begin();
		struct look before = look();
		struct crema_task *t;
		struct truth known;

		for (int i = 0; i < 50; i++) {
			assert_int_equal(pwrite(fd, data, sizeof(data), i * 4096), sizeof(data));
			assert_int_equal(way ? fdatasync(fd) : fsync(fd), 0);
		}
		known = blocked_since(&before);
		t = harness_end(&h);
		if (known.known_ns > 10 * MS) {
			share_is(t, CREMA_T_storage_wait, &known,
				 "fsync, fdatasync | elapsed time less CPU clock and run delay");
			others_are_small(t, CREMA_T_storage_wait, CREMA_T_runqueue, &known);
		}
		assert_int_equal(t->own.count[CREMA_C_sync_calls], 50);
		harness_free(&h);
	}
	close(fd);
}

enum { BY_FLOCK, BY_FCNTL, BY_OFD, BY_LOCKF };

static int lock_file(int fd, int how, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET};

	if (how == BY_FLOCK)
		return flock(fd, type == F_UNLCK ? LOCK_UN : LOCK_EX);
	if (how == BY_LOCKF)
		return lockf(fd, type == F_UNLCK ? F_ULOCK : F_LOCK, 0);
	return fcntl(fd, how == BY_OFD ? F_OFD_SETLKW : F_SETLKW, &lock);
}

/* Held by another process, which is what such locks are for. */
static void a_locked_file_is_a_lock(void **state)
{
	const char *name = harness_file("locked", 10);

	(void)state;
	for (int how = BY_FLOCK; how <= BY_LOCKF; how++) {
		int fd = open(name, O_RDWR), ready[2];
		struct harness_task h;
		struct crema_task *t;
		struct truth known;
		struct look before;
		pid_t child;
		char byte;

		assert_int_equal(pipe(ready), 0);
		child = fork();
		if (!child) {
			int own = open(name, O_RDWR);

			lock_file(own, how, F_WRLCK);
			(void)!write(ready[1], "x", 1);
			usleep(120000);
			_exit(0);
		}
		assert_int_equal(read(ready[0], &byte, 1), 1);
		h = harness_begin();
		before = look();
		assert_int_equal(lock_file(fd, how, F_WRLCK), 0);
		known = blocked_since(&before);
		t = harness_end(&h);
		assert_int_equal(waitpid(child, NULL, 0), child);
		assert_true(known.known_ns > 50 * MS);
		share_is(t, CREMA_T_lock_wait, &known,
			 "a file's lock | its elapsed time less its CPU clock and the kernel's run "
			 "delay");
		others_are_small(t, CREMA_T_lock_wait, CREMA_T_runqueue, &known);
		harness_free(&h);
		close(ready[0]);
		close(ready[1]);
		close(fd);
	}
	unlink(name);
}

static void sleep_is_sleep(void **state)
{
	struct timespec ts = {0, 50 * MS};
	struct harness_task h = harness_begin();
	struct timeval tv = {0, 50000};
	struct crema_task *t;
	struct look before = look();
	struct truth known;

	(void)state;
	nanosleep(&ts, NULL);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
	usleep(50000);
	select(0, NULL, NULL, NULL, &tv);
	poll(NULL, 0, 50);
	known = blocked_since(&before);
	t = harness_end(&h);
	assert_true(known.known_ns >= 240 * MS);
	share_is(t, CREMA_T_sleep, &known,
		 "sleep | its elapsed time less its CPU clock and the kernel's run delay");
	others_are_small(t, CREMA_T_sleep, CREMA_T_runqueue, &known);
	harness_free(&h);
}

/* A slow peer: twice for recv, then for poll, then for a recv that polls first. */
static void *slow_peer(void *arg)
{
	int fd = *(int *)arg;

	for (int i = 0; i < 4; i++) {
		usleep(60000);
		if (send(fd, "x", 1, 0) != 1)
			break;
	}
	return NULL;
}

static void waiting_for_a_peer_is_network(void **state)
{
	struct epoll_event event = {.events = EPOLLIN}, got;
	struct pollfd p = {-1, POLLIN, 0};
	struct look before;
	struct harness_task h;
	struct crema_task *t;
	pthread_t other;
	struct truth known;
	int epoll = epoll_create1(0), fd, peer;
	char c;

	(void)state;
	harness_connect(&fd, &peer);
	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
	assert_int_equal(pthread_create(&other, NULL, slow_peer, &peer), 0);
	h = harness_begin();
	before = look();
	assert_int_equal(recv(fd, &c, 1, 0), 1);
	assert_int_equal(read(fd, &c, 1), 1);
	p.fd = fd;
	assert_int_equal(poll(&p, 1, 5000), 1);
	assert_int_equal(recv(fd, &c, 1, 0), 1);
	assert_int_equal(epoll_wait(epoll, &got, 1, 5000), 1);
	known = blocked_since(&before);
	t = harness_end(&h);
	pthread_join(other, NULL);
	assert_int_equal(t->own.count[CREMA_C_network_read_bytes], 3);
	share_is(t, CREMA_T_network_wait, &known,
		 "network | its elapsed time less its CPU clock and the kernel's run delay");
	others_are_small(t, CREMA_T_network_wait, CREMA_T_runqueue, &known);
	harness_free(&h);
	close(fd);
	close(peer);
	close(epoll);
}

/* A cold file read in pieces: time that is neither CPU nor run queue is the wait for storage. */
static void cold_read(size_t piece, const char *what)
{
	enum { SIZE = 64 << 20 };
	const char *path = harness_file("cold", SIZE);
	static char buf[1 << 20];
	struct harness_task h;
	struct crema_task *t;
	struct look before;
	struct truth known;
	size_t pages = harness_make_cold(path);
	int fd = open(path, O_RDONLY);
	ssize_t n;

	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM); /* no read-ahead: every piece blocks */
	h = harness_begin();
	before = look();
	while ((n = read(fd, buf, piece)) > 0)
		;
	known = blocked_since(&before);
	t = harness_end(&h);
	close(fd);
	unlink(path);
	assert_int_equal(t->own.count[CREMA_C_read_bytes], SIZE);
	assert_int_equal(t->own.count[CREMA_C_storage_read_bytes], pages);
	share_is(t, CREMA_T_storage_wait, &known, what);
	others_but(t, CREMA_T_storage_wait, 1u << CREMA_T_cpu | 1u << CREMA_T_runqueue, &known);
	harness_free(&h);
}

static void large_cold_reads_are_storage(void **state)
{
	(void)state;
	cold_read(1 << 20, "cold reads of 1 MiB | its elapsed time less its CPU clock and the "
			   "kernel's run delay");
}

static void small_cold_reads_are_storage(void **state)
{
	(void)state;
	cold_read(4096, "cold reads of 4 KiB | its elapsed time less its CPU clock and the "
			"kernel's run delay");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spin_is_cpu),
		cmocka_unit_test(two_spinners_on_one_core_wait_for_it),
		cmocka_unit_test(waits_in_the_runtime_are_gil),
		cmocka_unit_test(other_waits_are_locks),
		cmocka_unit_test(a_held_mutex_is_a_lock),
		cmocka_unit_test(a_locked_file_is_a_lock),
		cmocka_unit_test(sleep_is_sleep),
		cmocka_unit_test(waiting_for_a_peer_is_network),
		cmocka_unit_test(a_synced_file_is_storage),
		cmocka_unit_test(large_cold_reads_are_storage),
		cmocka_unit_test(small_cold_reads_are_storage),
	};

	return cmocka_run_group_tests_name("shim time", tests, harness_setup, NULL);
}
