/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_shim.c - what the shim adds to a call, compared with DESIGN's budgets.
 *
 * One run interleaves blocks of the real function, the wrapper and a system call that does nothing.
 * It prints the median of the differences with its error and the raw cost, in ns, in such system
 * calls and as a ratio to the budget, which is in such calls, too. Then it prints the cost of the
 * kernel's clocks alone, which is a lower bound for any wrapper. A missed budget has a separate
 * line, as in budgets.py.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/count/clock.h"
#include "shim/count/codec.h"
#include "shim/count/op.h"
#include "shim/libc/real.h"
#include "shim/count/section.h"
#include "shim/shim.h"
#include "shim/python/notify.h"
#include "shim/libc/sys.h"
#include "shim/count/task.h"

enum { BLOCKS = 41, CALLS = 2000 };

static int fd;
static char buf[1 << 20];
static size_t size = 1;

static void call_real_pread(void)
{
	if (real.pread(fd, buf, size, 0) < 0)
		abort();
}

static void call_pread(void)
{
	if (pread(fd, buf, size, 0) < 0)
		abort();
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

/* A wait that blocks for about 60 us: the timer's slack. */
static void wait_by(int (*f)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *))
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += 1000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&mutex);
	f(&cond, &mutex, &t);
	pthread_mutex_unlock(&mutex);
}

static void call_real_wait(void)
{
	wait_by(real.pthread_cond_timedwait);
}

static int wait_asked(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t)
{
	int r = real.pthread_cond_timedwait(c, m, t);

	clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return r;
}

/* The lower bound of a wait: after one the processor is cold, and the same query costs more. */
static void call_asked_wait(void)
{
	wait_by(wait_asked);
}

static void call_wait(void)
{
	wait_by(pthread_cond_timedwait);
}

static void call_task(void)
{
	uint32_t owner = task_open();
	struct owner before = segment_begin(owner, 0);

	notify_task_begins(owner);
	task_stopped(owner, segment_end(before));
	notify_task_ends(owner, CREMA_STATUS_OK);
	crema_shm->slot_word[owner - 1] = CREMA_SLOT_FREE;
}

/* What is added to a codec's call, without Python. */
static void call_codec(void)
{
	struct codec_sum sum = {1, 20, 40, 0, 0, 0};
	uint64_t cpu = clock_cpu_ns(), start = ticks();

	sum.wall_ns = ticks_ns(ticks() - start);
	sum.cpu_ns = clock_cpu_inside(cpu, sum.wall_ns);
	codec_count(0, 1, &sum);
}

static void call_section(void)
{
	section_end(section_begin("jet_selection", 13, 0));
}

static void call_value(void)
{
	section_value("jets", 4, 3.5);
}

static size_t block_bytes = 64, touched_bytes;

static void allocate_by(void *(*volatile get)(size_t), void (*volatile put)(void *))
{
	void *p = get(block_bytes);

	if (!p)
		abort();
	memset(p, 1, touched_bytes);
	put(p);
}

static void call_real_malloc(void)
{
	allocate_by(real.malloc, real.free);
}

static void call_malloc(void)
{
	allocate_by(malloc, free);
}

static void call_nothing(void)
{
	__asm__ volatile("" ::: "memory");
}

static void call_null(void)
{
	SYS0(SYS_getppid);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double block(void (*f)(void), int calls, clockid_t clock)
{
	void (*volatile call)(void) = f; /* otherwise a compiler makes some of them direct calls */
	uint64_t start;

	if (crema_shm) /* as the agent does: a full ring would make reads cheaper */
		STORE(&crema_shm->extents_tail, LOAD(&crema_shm->extents_head));
	start = clock_ns(clock);
	for (int i = 0; i < calls; i++)
		call();
	return (double)(clock_ns(clock) - start) / calls;
}

/* Missed only if the figure exceeds the goal by twice the error. */
static void judge(const char *what, double figure, double error, double goal)
{
	if (goal > 0 && figure > goal)
		printf("budget %s: %s: %.3g +- %.2g null calls, goal %.3g; read docs/cost.md\n",
		       figure - 2 * error > goal ? "missed" : "undecided", what, figure, error,
		       goal);
	fflush(stdout);
}

/* Of the median of sorted values, from their quartiles. */
static double error_of_median(const double *v)
{
	return 0.93 * (v[BLOCKS * 3 / 4] - v[BLOCKS / 4]) / sqrt(BLOCKS);
}

/* A budget of 0: none. `clock`: the thread's CPU, to exclude other programs; the process's for
 * calls that start threads. */
static void compare(const char *what, void (*raw)(void), void (*with)(void), int calls,
		    double budget, clockid_t clock)
{
	double base[BLOCKS], added[BLOCKS], null[BLOCKS], more, error;

	for (int i = 0; i < BLOCKS; i++) {
		null[i] = block(call_null, calls, clock);
		base[i] = block(raw, calls, clock);
		added[i] = block(with, calls, clock) - base[i];
	}
	qsort(null, BLOCKS, sizeof(double), by_value);
	qsort(base, BLOCKS, sizeof(double), by_value);
	qsort(added, BLOCKS, sizeof(double), by_value);
	more = added[BLOCKS / 2] / null[BLOCKS / 2];
	error = error_of_median(added) / null[BLOCKS / 2];
	printf("%-50s raw %8.1f ns  added %7.1f ns = %5.2f +- %.2f null calls", what,
	       base[BLOCKS / 2], added[BLOCKS / 2], more, error);
	if (budget > 0)
		printf("  budget %5.2f  ratio %.2f", budget, more / budget);
	puts("");
	judge(what, more, error, budget);
}

/* What a large block adds is without the walk along Python's frames. */
static void allocations(const char *where)
{
	char what[80];
	void *volatile live;

	block_bytes = 64;
	touched_bytes = 1;
	snprintf(what, sizeof(what), "malloc and free of 64 B, %s", where);
	compare(what, call_real_malloc, call_malloc, CALLS, 0.03, CLOCK_THREAD_CPUTIME_ID);
	if (!crema_shm)
		return;
	live = malloc(4 << 20);
	compare("the same, while a large block is in use", call_real_malloc, call_malloc, CALLS,
		0.06, CLOCK_THREAD_CPUTIME_ID);
	free(live);
	block_bytes = 2 << 20;
	compare("malloc and free of 2 MiB, one byte written", call_real_malloc, call_malloc, CALLS,
		0, CLOCK_THREAD_CPUTIME_ID);
	touched_bytes = block_bytes;
	compare("the same, all of it written", call_real_malloc, call_malloc, 100, 0,
		CLOCK_THREAD_CPUTIME_ID);
}

/* The kernel's clocks, and two reads of the time stamp counter. */
static void look_ticks(void)
{
	volatile uint64_t a = ticks(), b = ticks();

	(void)a;
	(void)b;
}

static void look_cpu(void)
{
	clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void look_usage(void)
{
	struct rusage ru;

	SYS2(SYS_getrusage, 1 /* RUSAGE_THREAD */, &ru);
}

static void look_usage_all(void)
{
	struct rusage ru;

	SYS2(SYS_getrusage, RUSAGE_SELF, &ru);
}

static void look_delay(void)
{
	char text[96];

	sys_slurp("/proc/thread-self/schedstat", text, sizeof(text));
}

static void look_resident(void)
{
	task_rss_bytes();
}

static void floors(void)
{
	static const struct {
		const char *what;
		void (*look)(void);
	} all[] = {{"two looks at the time stamp counter", look_ticks},
		   {"the thread's CPU clock", look_cpu},
		   {"the thread's switches and blocks (getrusage)", look_usage},
		   {"the process's peak (getrusage)", look_usage_all},
		   {"the run queue's delay (/proc)", look_delay},
		   {"the resident set (/proc)", look_resident}};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		double look[BLOCKS], null[BLOCKS];

		for (int b = 0; b < BLOCKS; b++) {
			null[b] = block(call_null, CALLS, CLOCK_THREAD_CPUTIME_ID);
			look[b] = block(all[i].look, CALLS, CLOCK_THREAD_CPUTIME_ID);
		}
		qsort(null, BLOCKS, sizeof(double), by_value);
		qsort(look, BLOCKS, sizeof(double), by_value);
		printf("floor: %-43s %8.1f ns = %5.2f null calls\n", all[i].what, look[BLOCKS / 2],
		       look[BLOCKS / 2] / null[BLOCKS / 2]);
	}
}

static uint32_t heir_of;

static void *one_read(void *with)
{
	if (with) {
		task_ref(heir_of);
		thread_inherit(heir_of);
	}
	(with ? call_pread : call_real_pread)();
	return NULL;
}

static void call_real_thread(void)
{
	pthread_t thread;

	if (real.pthread_create(&thread, NULL, one_read, NULL))
		abort();
	real.pthread_join(thread, NULL);
}

static void call_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, one_read, &heir_of))
		abort();
	pthread_join(thread, NULL);
}

static void *four_threads(void *arg)
{
	uint32_t owner = task_open();
	struct owner before = segment_begin(owner, 0);

	notify_task_begins(owner);
	compare(arg, call_real_pread, call_pread, CALLS, 0.36, CLOCK_THREAD_CPUTIME_ID);
	task_stopped(owner, segment_end(before));
	notify_task_ends(owner, CREMA_STATUS_OK);
	return NULL;
}

/* As in a worker of a large program: its parent's peak memory exceeds its own (task.c). */
static void begin_again(char **argv)
{
	size_t bytes = 256u << 20;
	char *fat = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fat == MAP_FAILED)
		return;
	memset(fat, 1, bytes);
	execl("/proc/self/exe", argv[0], "again", NULL);
}

int main(int argc, char **argv)
{
	pthread_t threads[4];
	struct owner before;
	const char *why = "";
	uint32_t owner;

	if (argc < 2)
		begin_again(argv);
	fd = open("/proc/self/exe", O_RDONLY);
	size = 1;
	printf("scale: a null system call costs %.0f ns here\n",
	       block(call_null, 100000, CLOCK_THREAD_CPUTIME_ID));
	compare("pread 1 B, process that is not a worker", call_real_pread, call_pread, CALLS, 0.04,
		CLOCK_THREAD_CPUTIME_ID);
	allocations("not a worker");
	if (shim_arm(&why)) {
		fprintf(stderr, "bench: cannot arm: %s\n", why);
		return 1;
	}
	unlink(shim_path());
	task_memory_keep();
	compare("pread 1 B, worker, no task", call_real_pread, call_pread, CALLS, 0.36,
		CLOCK_THREAD_CPUTIME_ID);
	owner = task_open();
	before = segment_begin(owner, 0);
	notify_task_begins(owner);
	compare("pread 1 B, attributed and timed", call_real_pread, call_pread, CALLS, 0.36,
		CLOCK_THREAD_CPUTIME_ID);
	size = 4096;
	compare("pread 4 KiB, attributed and timed", call_real_pread, call_pread, CALLS, 0.36,
		CLOCK_THREAD_CPUTIME_ID);
	size = 65536;
	compare("pread 64 KiB, bracketed with the thread's clocks", call_real_pread, call_pread,
		CALLS, 8, CLOCK_THREAD_CPUTIME_ID);
	allocations("in a task");
	compare("wait that blocked, classified (thread CPU)", call_real_wait, call_wait, 300, 8,
		CLOCK_THREAD_CPUTIME_ID);
	compare("floor: that wait, and the CPU clock after it", call_real_wait, call_asked_wait,
		300, 0, CLOCK_THREAD_CPUTIME_ID);
	compare("codec call (without Python)", call_nothing, call_codec, CALLS, 3,
		CLOCK_THREAD_CPUTIME_ID);
	compare("section: begin and end (without Python)", call_nothing, call_section, CALLS, 24,
		CLOCK_THREAD_CPUTIME_ID);
	compare("value told by a task (without Python)", call_nothing, call_value, CALLS, 1.2,
		CLOCK_THREAD_CPUTIME_ID);
	heir_of = owner;
	size = 1;
	compare("thread of a task: start, one read, join", call_real_thread, call_thread, 100, 60,
		CLOCK_PROCESS_CPUTIME_ID);
	task_stopped(owner, segment_end(before));
	notify_task_ends(owner, CREMA_STATUS_OK);
	compare("task: slot, clocks and segment (without Python)", call_nothing, call_task, CALLS,
		44, CLOCK_THREAD_CPUTIME_ID);
	floors();
	for (int i = 0; i < 4; i++)
		pthread_create(
			&threads[i], NULL, four_threads,
			(void *)(uintptr_t)(i ? "pread 1 B, one of 4 threads (thread CPU)"
					      : "pread 1 B, first of 4 threads (thread CPU)"));
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
