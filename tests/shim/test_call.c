/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_call.c - a thread's block shows the call it is in: set while the real call runs, 0 before
 * and after, and never with the start of another call.
 */
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/count/call.h"

#define LOOKS 2000000

struct seen {
	struct crema_thread *t; /* the thread to observe */
	uint64_t word, start;
};

/* Waits until that thread is in a call, and stores its values. */
static void look(struct seen *s)
{
	while (!crema_call_read(&s->t->call, &s->t->call_start, &s->word, &s->start))
		usleep(1000);
}

static void *write_to(void *arg)
{
	struct seen *s = ((void **)arg)[0];

	look(s);
	assert_int_equal(write(*(int *)((void **)arg)[1], "x", 1), 1);
	return NULL;
}

static void *post(void *arg)
{
	look(((void **)arg)[0]);
	sem_post(((void **)arg)[1]);
	return NULL;
}

static void a_read_and_a_wait(void **state)
{
	struct harness_task task = harness_begin();
	struct seen s = {thread_self(), 0, 0};
	uint64_t before = ticks();
	pthread_t other;
	int ends[2];
	char byte;
	sem_t semaphore;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pthread_create(&other, NULL, write_to, (void *[]){&s, &ends[1]}), 0);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	pthread_join(other, NULL);
	assert_int_equal(crema_call_of(s.word), CREMA_CALL_read);
	assert_int_equal(crema_call_object(s.word), ends[0]);
	assert_true(s.start >= before && s.start <= ticks());
	assert_int_equal(s.t->call, 0);

	assert_int_equal(sem_init(&semaphore, 0, 0), 0);
	assert_int_equal(pthread_create(&other, NULL, post, (void *[]){&s, &semaphore}), 0);
	assert_int_equal(sem_wait(&semaphore), 0);
	assert_int_equal(crema_call_of(s.word), CREMA_CALL_sem_wait);
	assert_int_equal(crema_call_object(s.word), (uintptr_t)&semaphore);
	pthread_join(other, NULL);
	assert_int_equal(s.t->call, 0);
	harness_end(&task);
	harness_free(&task);
	close(ends[0]);
	close(ends[1]);
}

static void *open_other_end(void *arg)
{
	look(((void **)arg)[0]);
	close(open(((void **)arg)[1], O_WRONLY));
	return NULL;
}

static void an_open_tells_its_path(void **state)
{
	struct harness_task task = harness_begin();
	struct seen s = {thread_self(), 0, 0};
	char path[64];
	pthread_t other;
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "call-%d.fifo", (int)getpid());
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(pthread_create(&other, NULL, open_other_end, (void *[]){&s, path}), 0);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(crema_call_of(s.word), CREMA_CALL_open);
	assert_int_equal(crema_call_object(s.word), (uintptr_t)path);
	pthread_join(other, NULL);
	assert_int_equal(s.t->call, 0);
	close(fd);
	unlink(path);
	harness_end(&task);
	harness_free(&task);
}

static struct crema_thread block;
static volatile int over;

static void *change(void *unused)
{
	(void)unused;
	for (uint64_t i = 1; !over; i++) {
		call_begin(&block, CREMA_CALL_read, i, i);
		call_end(&block);
	}
	return NULL;
}

/* Object and start are the same number in each call. */
static void never_of_two_calls(void **state)
{
	uint64_t word, start, good = 0;
	pthread_t other;

	(void)state;
	assert_int_equal(pthread_create(&other, NULL, change, NULL), 0);
	for (int i = 0; i < LOOKS; i++) {
		if (!crema_call_read(&block.call, &block.call_start, &word, &start))
			continue;
		assert_int_equal(crema_call_object(word), start);
		good++;
	}
	over = 1;
	pthread_join(other, NULL);
	(void)good; /* on one core it may be 0 */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_read_and_a_wait),
		cmocka_unit_test(an_open_tells_its_path),
		cmocka_unit_test(never_of_two_calls),
	};

	harness_arm();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
