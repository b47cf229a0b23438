/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_overlap.c - a task's thread that waits for its pool gets the class of the pool's waits:
 * storage if the pool reads cold files, the network, or a lock if the pool computes.
 */
#include "harness.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim/count/overlap.h"

#define MS 1000000ull
enum { SIZE = 32 << 20, PIECE = 64 << 10 };

struct work {
	uint32_t owner;
	const char *path; /* NULL: spin */
	sem_t done;
	int socket; /* otherwise data arrives here; polls: polls before receiving */
	bool polls;
};

static void *pool(void *arg)
{
	struct work *w = arg;
	struct owner before = segment_begin(w->owner, 1);
	static __thread char buf[PIECE];
	int fd;

	if (w->path) {
		fd = open(w->path, O_RDONLY);
		posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
		while (read(fd, buf, sizeof(buf)) > 0)
			;
		close(fd);
	} else if (w->socket) {
		if (w->polls)
			assert_int_equal(poll(&(struct pollfd){w->socket, POLLIN, 0}, 1, -1), 1);
		assert_int_equal(recv(w->socket, buf, 1, 0), 1);
	} else {
		harness_spin(100 * MS);
	}
	sem_post(&w->done);
	segment_end(before);
	return NULL;
}

/* A task that waits for n pool threads; the slot with its final numbers. */
static struct crema_task *run(struct harness_task *h, struct work *w, int n)
{
	pthread_t threads[4];

	*h = harness_begin();
	for (int i = 0; i < n; i++) {
		w[i].owner = h->owner;
		sem_init(&w[i].done, 0, 0);
		assert_int_equal(pthread_create(&threads[i], NULL, pool, &w[i]), 0);
	}
	for (int i = 0; i < n; i++)
		sem_wait(&w[i].done);
	harness_end(h);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return task_slot(h->owner);
}

static void show(const char *what, const struct crema_task *t)
{
	print_message(
		"%s: wall %.1f ms, own storage %.1f lock %.1f, pool storage %.1f cpu %.1f ms\n",
		what, (double)harness_wall_ns(t) / 1e6,
		(double)t->own.time[CREMA_T_storage_wait] / 1e6,
		(double)t->own.time[CREMA_T_lock_wait] / 1e6,
		(double)t->pool_time[CREMA_T_storage_wait] / 1e6,
		(double)t->pool_time[CREMA_T_cpu] / 1e6);
}

static void cold_reads_of_a_pool_are_storage(void **state)
{
	struct work w[1] = {{0, harness_file("cold", SIZE), {{0}}, 0, false}};
	struct harness_task h;
	struct crema_task *t;
	uint64_t pool_wait, own;

	(void)state;
	harness_make_cold(w[0].path);
	t = run(&h, w, 1);
	show("cold pool", t);
	pool_wait = t->pool_time[CREMA_T_storage_wait];
	own = t->own.time[CREMA_T_storage_wait];
	assert_true(pool_wait > 5 * MS);
	assert_true(own * 100 >= pool_wait * 90 && own * 100 <= pool_wait * 105);
	/* the rest of the wait is the pool's CPU: a lock wait for this thread */
	assert_true(own + t->own.time[CREMA_T_lock_wait] <= harness_wall_ns(t));
	harness_free(&h);
	unlink(w[0].path);
}

static void *answer_late(void *peer)
{
	usleep(100000);
	assert_int_equal(send(*(int *)peer, "x", 1, 0), 1);
	return NULL;
}

static void answers_to_a_pool_are_network(void **state)
{
	struct work w[1] = {{0}};
	uint64_t pool_wait, own;
	struct harness_task h;
	struct crema_task *t;
	pthread_t other;
	int peer;

	(void)state;
	harness_connect(&w[0].socket, &peer);
	for (int polls = 0; polls < 2; polls++) {
		w[0].polls = polls;
		assert_int_equal(pthread_create(&other, NULL, answer_late, &peer), 0);
		t = run(&h, w, 1);
		pthread_join(other, NULL);
		pool_wait = t->pool_time[CREMA_T_network_wait];
		own = t->own.time[CREMA_T_network_wait];
		print_message("network: pool %.1f own %.1f ms\n", (double)pool_wait / 1e6,
			      (double)own / 1e6);
		assert_true(pool_wait > 50 * MS);
		assert_true(own * 100 >= pool_wait * 90 && own * 100 <= pool_wait * 105);
		assert_true(own + t->own.time[CREMA_T_lock_wait] <= harness_wall_ns(t));
		harness_free(&h);
	}
	close(w[0].socket);
	close(peer);
}

static void a_computing_pool_is_a_lock(void **state)
{
	struct work w[1] = {{0, NULL, {{0}}, 0, false}};
	struct harness_task h;
	struct crema_task *t;

	(void)state;
	t = run(&h, w, 1);
	show("computing pool", t);
	assert_true(t->own.time[CREMA_T_storage_wait] == 0);
	assert_true(t->own.time[CREMA_T_lock_wait] >= 90 * MS);
	harness_free(&h);
}

static void warm_reads_of_a_pool_are_a_lock(void **state)
{
	struct work w[1] = {{0, harness_file("warm", SIZE), {{0}}, 0, false}};
	struct harness_task h;
	struct crema_task *t;

	(void)state;
	t = run(&h, w, 1); /* just written: in the page cache */
	harness_free(&h);
	t = run(&h, w, 1);
	show("warm pool", t);
	assert_true(t->own.time[CREMA_T_storage_wait] * 50 <= harness_wall_ns(t));
	harness_free(&h);
	unlink(w[0].path);
}

static void parallel_waits_count_once(void **state)
{
	struct work w[3] = {{0, harness_file("p1", SIZE), {{0}}, 0, false},
			    {0, harness_file("p2", SIZE), {{0}}, 0, false},
			    {0, harness_file("p3", SIZE), {{0}}, 0, false}};
	struct harness_task h;
	struct crema_task *t;
	uint64_t own;

	(void)state;
	for (int i = 0; i < 3; i++)
		harness_make_cold(w[i].path);
	t = run(&h, w, 3);
	show("three cold pools", t);
	own = t->own.time[CREMA_T_storage_wait] + t->own.time[CREMA_T_lock_wait];
	assert_true(own <= harness_wall_ns(t));
	assert_true(t->own.time[CREMA_T_storage_wait] <=
		    t->overlap_union_ns[CREMA_OVERLAP_STORAGE]);
	harness_free(&h);
	for (int i = 0; i < 3; i++)
		unlink(w[i].path);
}

/* The union alone, with known times. */
static void unions_are_unions(void **state)
{
	struct crema_task *t = &crema_shm->task[CREMA_SHM_TASKS - 1];
	struct overlap_mark m;
	uint64_t got, inner, outer;

	(void)state;
	overlap_mark(t, &m);
	outer = harness_now_ns();
	overlap_enter(t, CREMA_OVERLAP_NETWORK);
	inner = harness_now_ns();
	usleep(20000);
	overlap_enter(t, CREMA_OVERLAP_NETWORK);
	usleep(20000);
	overlap_leave(t, CREMA_OVERLAP_NETWORK, 500 * MS);
	usleep(20000);
	inner = harness_now_ns() - inner;
	overlap_leave(t, CREMA_OVERLAP_NETWORK, 500 * MS);
	outer = harness_now_ns() - outer;
	usleep(20000);
	got = overlap_since(t, &m, CREMA_OVERLAP_NETWORK, 1000 * MS);
	assert_true(got + MS >= inner && got <= outer + MS);
	assert_int_equal(overlap_since(t, &m, CREMA_OVERLAP_NETWORK, 5 * MS), 5 * MS);
	assert_int_equal(overlap_since(t, &m, CREMA_OVERLAP_STORAGE, 5 * MS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cold_reads_of_a_pool_are_storage),
		cmocka_unit_test(answers_to_a_pool_are_network),
		cmocka_unit_test(a_computing_pool_is_a_lock),
		cmocka_unit_test(warm_reads_of_a_pool_are_a_lock),
		cmocka_unit_test(parallel_waits_count_once),
		cmocka_unit_test(unions_are_unions),
	};

	return cmocka_run_group_tests_name("shim overlap", tests, harness_setup, NULL);
}
