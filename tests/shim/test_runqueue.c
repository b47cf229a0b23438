/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_runqueue.c - thousands of waits so short that they are charged before their delay in the run
 * queue is known: in the end each class matches the kernel's numbers.
 */
#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clocks.h"
#include "shim/count/clock.h"
#include "shim/count/op.h"
#include "shim/count/runqueue.h"
#include "shim/count/task.h"
#include "shim/count/thread.h"

enum { WAITS = 1500 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static volatile int stop;

/* About 60 us: the timer's slack. */
static void short_lock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	pthread_mutex_lock(&mutex);
	pthread_cond_timedwait(&cond, &mutex, &t);
	t.tv_nsec += 1000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	pthread_cond_timedwait(&cond, &mutex, &t);
	pthread_mutex_unlock(&mutex);
}

static void short_sleep(void)
{
	struct timespec t = {0, 1000};

	nanosleep(&t, NULL);
}

/* Occasionally takes the core away, also between two waits. */
static void *disturber(void *unused)
{
	(void)unused;
	harness_pin(0);
	while (!stop) {
		usleep(300);
		for (volatile int i = 0; i < 20000; i++)
			;
	}
	return NULL;
}

static struct crema_task *run(struct harness_task *h, int a, int b, struct truth *known)
{
	pthread_t other;
	cpu_set_t all;
	struct look before;
	struct crema_task *t;

	sched_getaffinity(0, sizeof(all), &all);
	stop = 0;
	assert_int_equal(pthread_create(&other, NULL, disturber, NULL), 0);
	harness_pin(0);
	*h = harness_begin();
	before = look();
	for (int i = 0; i < WAITS; i++) {
		if (a)
			short_lock();
		if (b)
			short_sleep();
		harness_spin(20000);
	}
	*known = blocked_since(&before);
	t = harness_end(h);
	stop = 1;
	pthread_join(other, NULL);
	sched_setaffinity(0, sizeof(all), &all);
	print_message("delay %.3f ms\n", (double)known->delay_ns / 1e6);
	return t;
}

static void within(uint64_t value, uint64_t known, uint64_t stolen, double percent)
{
	double off = 100.0 * ((double)value - (double)known) / (double)known;
	double least = -percent - 100.0 * (double)stolen / (double)known;

	print_message("known %.3f ms, charged %.3f ms, off by %.2f %%, stolen %.0f ms\n",
		      (double)known / 1e6, (double)value / 1e6, off, (double)stolen / 1e6);
	assert_true(off < percent && off > least);
}

static void short_waits_of_one_class(void **state)
{
	struct harness_task h;
	struct truth k;
	struct crema_task *t = run(&h, 1, 0, &k);

	(void)state;
	within(t->own.time[CREMA_T_lock_wait], k.known_ns, k.stolen_ns, 4);
	assert_int_equal(t->own.time[CREMA_T_sleep], 0);
	within(t->own.time[CREMA_T_runqueue], k.delay_ns, k.stolen_ns, 5);
	harness_free(&h);
}

static void short_waits_of_two_classes(void **state)
{
	struct harness_task h;
	struct truth k;
	struct crema_task *t = run(&h, 1, 1, &k);

	(void)state;
	within(t->own.time[CREMA_T_lock_wait] + t->own.time[CREMA_T_sleep], k.known_ns, k.stolen_ns,
	       4);
	assert_true(t->own.time[CREMA_T_lock_wait] > k.known_ns / 5);
	assert_true(t->own.time[CREMA_T_sleep] > k.known_ns / 5);
	harness_free(&h);
}

/* A server that answers in many parts, after naps too short for a successful wait: each nap was
 * the network's, if the next part proves it; sleeps in between are not. */
static void naps_within_an_answer(int also_sleeps)
{
	const uint64_t *sleep = &thread_self()->seg.time[CREMA_T_sleep];
	int client, server;
	struct harness_task h;
	struct look before;
	struct truth k;
	struct crema_task *t;
	pthread_t other;
	cpu_set_t all;
	char c = '?';

	sched_getaffinity(0, sizeof(all), &all);
	stop = 0;
	harness_connect(&client, &server);
	assert_int_equal(pthread_create(&other, NULL, disturber, NULL), 0);
	harness_pin(0);
	h = harness_begin();
	assert_int_equal(send(client, &c, 1, 0), 1);
	before = look();
	for (int i = 0; i < WAITS; i++) {
		struct timeval nap = {0, 100};
		fd_set set;

		FD_ZERO(&set);
		FD_SET(client, &set);
		if (i > 0)
			select(client + 1, &set, NULL, NULL, &nap);
		if (also_sleeps)
			short_sleep();
		assert_int_equal(syscall(SYS_write, server, "!", 1), 1);
		assert_int_equal(recv(client, &c, 1, MSG_DONTWAIT), 1);
		assert_true(*sleep < harness_now_ns() - before.now);
		harness_spin(20000);
		if (!also_sleeps)
			assert_int_equal(*sleep, 0);
	}
	k = blocked_since(&before);
	t = harness_end(&h);
	stop = 1;
	pthread_join(other, NULL);
	sched_setaffinity(0, sizeof(all), &all);
	close(client);
	close(server);
	within(t->own.time[CREMA_T_network_wait] + t->own.time[CREMA_T_sleep], k.known_ns,
	       k.stolen_ns, 4);
	assert_true(t->own.time[CREMA_T_network_wait] > (WAITS - 1) * 100000ull * 9 / 10);
	assert_true(!also_sleeps == !t->own.time[CREMA_T_sleep]);
	harness_free(&h);
}

static void short_naps_within_an_answer(void **state)
{
	(void)state;
	naps_within_an_answer(0);
}

static void short_naps_and_sleeps_within_an_answer(void **state)
{
	(void)state;
	naps_within_an_answer(1);
}

static void *spinner(void *unused)
{
	(void)unused;
	harness_pin(0);
	while (!stop)
		;
	return NULL;
}

/* Computes and occasionally calls the kernel, as programs do. */
static void compute(void)
{
	for (volatile int i = 0; i < 3000000; i++)
		if (i % 1000 == 0)
			getppid();
}

/* The core is taken away at any moment, even while the shim reads the thread's clocks: a sleep is
 * as long as requested, and the time before and after it is the run queue's. */
static void a_sleep_on_a_busy_core_is_sleep(void **state)
{
	enum { SPINNERS = 4, SLEEPS = 25 };
	struct timespec ts = {0, 3 * 1000000};
	uint64_t asked = SLEEPS * 3 * 1000000ull;
	pthread_t other[SPINNERS];
	struct harness_task h;
	struct crema_task *t;
	cpu_set_t all;

	(void)state;
	sched_getaffinity(0, sizeof(all), &all);
	stop = 0;
	for (int i = 0; i < SPINNERS; i++)
		assert_int_equal(pthread_create(&other[i], NULL, spinner, NULL), 0);
	harness_pin(0);
	h = harness_begin();
	for (int i = 0; i < SLEEPS; i++) {
		compute();
		nanosleep(&ts, NULL);
	}
	t = harness_end(&h);
	stop = 1;
	for (int i = 0; i < SPINNERS; i++)
		pthread_join(other[i], NULL);
	sched_setaffinity(0, sizeof(all), &all);
	within(t->own.time[CREMA_T_sleep], asked, 0, 4);
	assert_true(t->own.time[CREMA_T_runqueue] > asked);
	harness_free(&h);
}

/* Computes until others have had the core for this long, according to the kernel. */
static void lose_the_core(uint64_t ns)
{
	uint64_t before = run_delay_ns();

	while (run_delay_ns() - before < ns)
		harness_spin(100000);
}

/* A held wait of 0.4 ms; the core was lost in it or after it. */
static uint64_t held_wait(int lost_in_it, int lost_after_it)
{
	struct op_end e = {.gross_ns = 400000};
	struct crema_thread t;
	uint64_t switches;

	do {
		memset(&t, 0, sizeof(t));
		runqueue_forget();
		switches = switches_so_far();
		runqueue_wait_begins(&t, CREMA_T_sleep, clock_turn());
		if (lost_in_it)
			lose_the_core(5000000);
		e.cpu_ns = clock_cpu_ns();
		e.turn = clock_turn();
		assert_int_equal(runqueue_hold(&t, CREMA_T_sleep, &e), 1);
	} while (!lost_in_it && switches_so_far() != switches);
	if (lost_after_it > 1)
		harness_spin(40000000);
	if (lost_after_it)
		lose_the_core(5000000);
	runqueue_settle(&t, clock_turn());
	return t.seg.time[CREMA_T_sleep];
}

/* Time without the core during the wait is subtracted, time after it is not. */
static void only_what_was_lost_in_a_wait(void **state)
{
	pthread_t other[3];
	cpu_set_t all;

	(void)state;
	sched_getaffinity(0, sizeof(all), &all);
	stop = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&other[i], NULL, spinner, NULL), 0);
	harness_pin(0);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(held_wait(1, 0), 0);
		/* clocks are read one after the other, and a kept one is 0.1 ms ahead at most */
		assert_in_range(held_wait(0, 1), 200000, 400000);
	}
	/* what the thread itself computed afterwards does not count as lost */
	assert_int_equal(held_wait(1, 2), 0);
	stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(other[i], NULL);
	sched_setaffinity(0, sizeof(all), &all);
}

/* Without a descriptor for reading them, a task's delay and memory are unknown. */
static void what_cannot_be_read_is_unknown(void **state)
{
	struct rlimit was, none;
	struct harness_task h;
	struct crema_task *t;
	int64_t delay;
	uint64_t rss;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = (struct rlimit){0, was.rlim_max};
	h = harness_begin();
	assert_true(runqueue_delay_ns() >= 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	delay = runqueue_delay_ns();
	rss = task_rss_bytes();
	short_sleep();
	t = harness_end(&h);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(delay, -EMFILE);
	assert_int_equal(rss, 0);
	assert_int_equal(t->time_unknown, 1u << CREMA_T_runqueue);
	harness_free(&h);
}

/* The delay of the thread's life so far is none of the task's. */
static void what_could_not_be_read_at_its_start_is_unknown(void **state)
{
	struct rlimit was, none;
	struct harness_task h[2];
	struct crema_task *t[2];
	uint32_t at_once;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = (struct rlimit){0, was.rlim_max};
	runqueue_forget();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	h[0] = harness_begin();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	at_once = task_slot(h[0].owner)->time_unknown;
	short_sleep();
	t[0] = harness_end(&h[0]);
	h[1] = harness_begin();
	short_sleep();
	t[1] = harness_end(&h[1]);
	assert_int_equal(at_once, 1u << CREMA_T_runqueue); /* the agent sends it while it runs */
	assert_int_equal(t[0]->time_unknown, 1u << CREMA_T_runqueue);
	assert_int_equal(t[0]->own.time[CREMA_T_runqueue], 0);
	assert_int_equal(t[1]->time_unknown, 0);
	harness_free(&h[0]);
	harness_free(&h[1]);
}

enum { THREADS = 40 };

static pthread_barrier_t all_read, all_seen;

static void *runs_tasks(void *arg)
{
	int64_t *read = arg;

	runqueue_keep();
	read[0] = runqueue_delay_ns();
	harness_spin(2000000);
	pthread_barrier_wait(&all_read);
	pthread_barrier_wait(&all_seen);
	read[1] = runqueue_delay_ns();
	runqueue_forget();
	read[2] = (int64_t)run_delay_ns();
	return NULL;
}

static unsigned int kept(void)
{
	int fd;

	return harness_descriptors_of("/schedstat", &fd);
}

static void check_child(void)
{
	int status = -1;
	pid_t child = fork();

	if (!child) {
		runqueue_drop_all();
		_exit(kept() != 0 || runqueue_delay_ns() < 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* Each reads its own file, as many as have room from one that stays open, and it goes with its
 * thread. */
static void threads_of_tasks_keep_a_descriptor(void **state)
{
	pthread_t thread[THREADS];
	int64_t read[THREADS][3];

	(void)state;
	assert_int_equal(kept(), 0);
	runqueue_keeps = 1;
	pthread_barrier_init(&all_read, NULL, THREADS + 1);
	pthread_barrier_init(&all_seen, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, runs_tasks, read[i]), 0);
	pthread_barrier_wait(&all_read);
	assert_int_equal(kept(), RUNQUEUE_KEPT);
	check_child();
	assert_int_equal(kept(), RUNQUEUE_KEPT);
	pthread_barrier_wait(&all_seen);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		assert_true(read[i][0] >= 0 && read[i][1] >= read[i][0]);
		assert_true(read[i][2] >= read[i][1]);
		assert_true(read[i][2] - read[i][1] < 20000000);
	}
	assert_int_equal(kept(), 0);
	runqueue_keeps = 0;
}

/* Nothing is kept where no descriptor may be, and none by a thread that runs no tasks. */
static void others_keep_none(void **state)
{
	(void)state;
	runqueue_keep();
	assert_true(runqueue_delay_ns() >= 0);
	assert_int_equal(kept(), 0);
	runqueue_keeps = 1;
	assert_true(runqueue_delay_ns() >= 0);
	assert_int_equal(kept(), 0);
	runqueue_keeps = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_waits_of_one_class),
		cmocka_unit_test(short_waits_of_two_classes),
		cmocka_unit_test(short_naps_within_an_answer),
		cmocka_unit_test(short_naps_and_sleeps_within_an_answer),
		cmocka_unit_test(a_sleep_on_a_busy_core_is_sleep),
		cmocka_unit_test(only_what_was_lost_in_a_wait),
		cmocka_unit_test(what_cannot_be_read_is_unknown),
		cmocka_unit_test(what_could_not_be_read_at_its_start_is_unknown),
		cmocka_unit_test(threads_of_tasks_keep_a_descriptor),
		cmocka_unit_test(others_keep_none),
	};

	return cmocka_run_group_tests(tests, harness_setup, NULL);
}
