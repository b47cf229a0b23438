/* SPDX-License-Identifier: BSD-3-Clause */
/* test_many_threads.c - threads that find no block in the table. */
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "shim/count/op.h"

#define ALL_TIMES ((1u << CREMA_TIMES) - 1)
#define ALL_COUNTS ((UINT64_C(1) << CREMA_COUNTS) - 1)

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static unsigned int may_end;

/* Thread `arg` keeps its block until may_end exceeds its number. */
static void *idle(void *arg)
{
	pthread_mutex_lock(&gate);
	while (may_end <= (uintptr_t)arg)
		pthread_cond_wait(&opened, &gate);
	pthread_mutex_unlock(&gate);
	return NULL;
}

static pthread_t idlers[CREMA_SHM_THREADS];
static unsigned int idler_count;

static unsigned int blocks_taken(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < CREMA_SHM_THREADS; i++)
		n += __atomic_load_n(&crema_shm->thread[i].state, __ATOMIC_RELAXED) == 1;
	return n;
}

static int fill(void **state)
{
	pthread_attr_t attr;

	harness_setup(state);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	for (unsigned int n = blocks_taken(); n < CREMA_SHM_THREADS; n++, idler_count++)
		if (pthread_create(&idlers[idler_count], &attr, idle,
				   (void *)(uintptr_t)idler_count))
			return -1;
	while (blocks_taken() < CREMA_SHM_THREADS)
		usleep(1000);
	return 0;
}

static unsigned int ended;

static void free_a_block(void)
{
	pthread_mutex_lock(&gate);
	may_end++;
	pthread_cond_broadcast(&opened);
	pthread_mutex_unlock(&gate);
	pthread_join(idlers[ended++], NULL);
	assert_int_equal(blocks_taken(), CREMA_SHM_THREADS - 1);
}

static void take_the_block(void)
{
	static pthread_t more[8];
	static unsigned int n;

	pthread_create(&more[n++], NULL, idle, (void *)(uintptr_t)100000);
	while (blocks_taken() < CREMA_SHM_THREADS)
		usleep(1000);
}

static int empty(void **state)
{
	(void)state;
	pthread_mutex_lock(&gate);
	may_end = 1000000;
	pthread_cond_broadcast(&opened);
	pthread_mutex_unlock(&gate);
	while (ended < idler_count)
		pthread_join(idlers[ended++], NULL);
	return 0;
}

static void in_a_thread(void *(*f)(void *), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, f, arg), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void check_unknown(const struct crema_task *t)
{
	assert_int_equal(t->time_unknown, ALL_TIMES);
	assert_int_equal(t->count_unknown & ALL_COUNTS, ALL_COUNTS);
	assert_int_equal(t->unblocked, 1);
}

static void check_known(const struct crema_task *t)
{
	assert_int_equal(t->time_unknown, 0);
	assert_int_equal(unknown_counts(t), 0);
	assert_int_equal(t->unblocked, 0);
}

static void read_bytes(const char *path, unsigned int n)
{
	int fd = open(path, O_RDONLY);
	char c;

	assert_true(fd >= 0);
	while (n--)
		assert_int_equal(read(fd, &c, 1), 1);
	close(fd);
}

/* The fastest of several batches, in ns for each lock and unlock. */
static uint64_t lock_ns(void)
{
	pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
	uint64_t best = UINT64_MAX;

	for (int k = 0; k < 200; k++) {
		uint64_t start = harness_now_ns(), ns;

		for (int i = 0; i < 100; i++) {
			pthread_mutex_lock(&own);
			pthread_mutex_unlock(&own);
		}
		ns = (harness_now_ns() - start) / 100;
		best = ns < best ? ns : best;
	}
	return best;
}

struct cost {
	uint64_t lock_ns;
	int has_block;
};

static void *measure(void *arg)
{
	struct cost *c = arg;

	c->lock_ns = lock_ns();
	read_bytes("/proc/self/cmdline", 3);
	c->has_block = thread_self() != NULL;
	return NULL;
}

static void a_thread_without_a_block_is_counted_once(void **state)
{
	uint64_t refused = crema_shm->totals.threads_refused;
	struct cost here, there;

	(void)state;
	measure(&here);
	in_a_thread(measure, &there);
	assert_true(here.has_block);
	assert_false(there.has_block);
	assert_int_equal(crema_shm->totals.threads_refused - refused, 1);
	in_a_thread(measure, &there);
	assert_int_equal(crema_shm->totals.threads_refused - refused, 2);
	print_message("lock and unlock: %lu ns with a block, %lu ns without\n", here.lock_ns,
		      there.lock_ns);
	assert_true(there.lock_ns < 4 * here.lock_ns + 40); /* a search of the table: 1,600 ns */
}

static void *whole_task(void *path)
{
	struct harness_task h = harness_begin();
	struct crema_task *t;

	read_bytes(path, 10);
	assert_int_equal(segment_owner(), h.owner); /* what it submits is still the task's */
	t = harness_end(&h);
	assert_int_equal(segment_owner(), OWNER_NONE);
	assert_true(t->stop_mono_ns >= t->start_mono_ns && t->start_mono_ns);
	return t;
}

static struct crema_task *task_elsewhere(const char *path)
{
	pthread_t thread;
	void *t;

	assert_int_equal(pthread_create(&thread, NULL, whole_task, (void *)(uintptr_t)path), 0);
	assert_int_equal(pthread_join(thread, &t), 0);
	return t;
}

static void numbers_of_a_task_without_a_block_are_unknown(void **state)
{
	const char *path = harness_file("many_threads.dat", 1000);

	(void)state;
	check_unknown(task_elsewhere(path));
	assert_true(crema_shm->totals.tasks_unblocked);
	/* the table is full, but this thread has a block */
	check_known(whole_task((void *)(uintptr_t)path));
	unlink(path);
}

struct pool {
	uint32_t owner;
	int nested;
};

static void *pool_work(void *arg)
{
	const struct pool *p = arg;
	struct owner before = segment_begin(p->owner, 1), inner;

	assert_int_equal(before.owner, OWNER_NONE);
	if (p->nested) {
		inner = segment_begin(OWNER_NONE, 0);
		assert_int_equal(inner.owner, p->owner);
		assert_int_equal(inner.is_pool, 1);
		segment_end(inner);
		assert_int_equal(segment_owner(), p->owner);
	}
	segment_end(before);
	assert_int_equal(segment_owner(), OWNER_NONE);
	return NULL;
}

static void numbers_of_a_task_are_unknown_if_its_pool_thread_has_no_block(void **state)
{
	struct harness_task h = harness_begin();
	struct pool p = {h.owner, 1};
	struct crema_task *t = task_slot(h.owner);
	uint32_t version;

	(void)state;
	check_known(t);
	in_a_thread(pool_work, &p);
	check_unknown(t);
	task_ref(h.owner);
	harness_end(&h);
	version = t->version;
	in_a_thread(pool_work, &p);
	assert_true(t->version > version); /* the agent sends it again */
	task_unref(h.owner);
}

static void *read_one(void *arg)
{
	char c;

	assert_int_equal(pread(*(int *)arg, &c, 1, 0), 1);
	return NULL;
}

static void reads_of_a_tasks_file_in_such_a_thread_make_it_unknown(void **state)
{
	const char *path = harness_file("many_threads.dat", 1000);
	struct harness_task h = harness_begin();
	struct crema_task *t = task_slot(h.owner);
	int fd = open(path, O_RDONLY);

	(void)state;
	check_known(t);
	in_a_thread(read_one, &fd);
	check_unknown(t);
	close(fd);
	harness_end(&h);
	unlink(path);
}

struct later {
	const char *path;
	int step;
	struct crema_task *task[2];
};

static void wait_for(int *step, int n)
{
	while (__atomic_load_n(step, __ATOMIC_ACQUIRE) != n)
		usleep(1000);
}

static void *two_tasks(void *arg)
{
	struct later *l = arg;
	struct harness_task h = harness_begin();

	__atomic_store_n(&l->step, 1, __ATOMIC_RELEASE);
	wait_for(&l->step, 2);
	read_bytes(l->path, 5);
	assert_null(thread_self()); /* a block must not begin in the middle of a task */
	l->task[0] = harness_end(&h);
	l->task[1] = whole_task((void *)(uintptr_t)l->path);
	assert_non_null(thread_self());
	return NULL;
}

static void a_thread_gets_a_block_when_one_is_free(void **state)
{
	uint64_t refused = crema_shm->totals.threads_refused;
	struct later l = {.path = harness_file("many_threads.dat", 1000)};
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, two_tasks, &l), 0);
	wait_for(&l.step, 1);
	free_a_block();
	__atomic_store_n(&l.step, 2, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	check_unknown(l.task[0]);
	check_known(l.task[1]);
	assert_int_equal(l.task[1]->own.count[CREMA_C_read_bytes], 10);
	assert_int_equal(crema_shm->totals.threads_refused - refused, 1);
	unlink(l.path);
	take_the_block();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_without_a_block_is_counted_once),
		cmocka_unit_test(numbers_of_a_task_without_a_block_are_unknown),
		cmocka_unit_test(numbers_of_a_task_are_unknown_if_its_pool_thread_has_no_block),
		cmocka_unit_test(reads_of_a_tasks_file_in_such_a_thread_make_it_unknown),
		cmocka_unit_test(a_thread_gets_a_block_when_one_is_free),
	};

	return cmocka_run_group_tests_name("shim many threads", tests, fill, empty);
}
