/* SPDX-License-Identifier: BSD-3-Clause */
/* test_task.c - slots, references, refusal, late work, the arena, forked children. */
#include "harness.h"
#include "shim/python/notify.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void slot_goes_through_its_states(void **state)
{
	struct harness_task h = harness_begin();
	uint32_t *word = &crema_shm->slot_word[h.owner - 1];
	struct crema_task *t;

	(void)state;
	assert_int_equal(CREMA_SLOT_STATE(*word), CREMA_SLOT_RUNNING);
	assert_int_equal(CREMA_SLOT_REFS(*word), 1);
	t = harness_end(&h);
	assert_int_equal(CREMA_SLOT_STATE(*word), CREMA_SLOT_DONE);
	assert_int_equal(CREMA_SLOT_REFS(*word), 0);
	assert_int_equal(t->status, CREMA_STATUS_OK);
	assert_true(t->stop_mono_ns >= t->start_mono_ns);
	assert_true(t->rss_start_bytes > 0);
	harness_free(&h);
}

/* Resident memory, read by standard means. */
static uint64_t rss_bytes(void)
{
	unsigned long size, pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu %lu", &size, &pages), 2);
	fclose(f);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t high_water_mark(void)
{
	unsigned long kib = 0;
	char line[128];
	FILE *f = fopen("/proc/self/status", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) && sscanf(line, "VmHWM: %lu", &kib) != 1)
		;
	fclose(f);
	return (uint64_t)kib * 1024;
}

static void assert_close(uint64_t got, uint64_t truth)
{
	const uint64_t slack = 4 << 20; /* what reading it uses */

	assert_in_range(got, truth > slack ? truth - slack : 0, truth + slack);
}

/* 64 MiB remain, 128 MiB more are allocated and freed within the task. */
static void memory_is_what_the_kernel_says(void **state)
{
	const size_t stays = 64u << 20, goes = 128u << 20;
	uint64_t before = rss_bytes(), after;
	struct harness_task h = harness_begin();
	struct crema_task *t = task_slot(h.owner);
	char *kept, *gone;

	(void)state;
	assert_close(t->rss_start_bytes, before);
	kept = mmap(NULL, stays, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	gone = mmap(NULL, goes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(kept != MAP_FAILED && gone != MAP_FAILED);
	memset(kept, 1, stays);
	memset(gone, 1, goes);
	munmap(gone, goes);
	after = rss_bytes();
	t = harness_end(&h);
	assert_close(after, before + stays);
	assert_close(t->rss_stop_bytes, after);
	assert_close(t->rss_peak_bytes, high_water_mark());
	assert_true(t->rss_peak_bytes >= before + stays + goes - (4 << 20));
	assert_int_equal(
		t->known & (CREMA_KNOWN_RSS_START | CREMA_KNOWN_RSS_STOP | CREMA_KNOWN_RSS_PEAK),
		CREMA_KNOWN_RSS_START | CREMA_KNOWN_RSS_STOP | CREMA_KNOWN_RSS_PEAK);
	munmap(kept, stays);
	harness_free(&h);
	/* the next one has no new peak: only the process's peak is known */
	h = harness_begin();
	t = harness_end(&h);
	assert_int_equal(t->known & CREMA_KNOWN_RSS_PEAK, 0);
	harness_free(&h);
}

/* getrusage counts the parent's memory as this program's: 512 MiB, due to a fork and its exec. */
static void memory_before_exec_is_not_ours(void **state)
{
	const size_t bytes = 512u << 20;
	int status = -1;
	pid_t child;
	char *fat;

	(void)state;
	fat = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(fat != MAP_FAILED);
	memset(fat, 1, bytes);
	child = fork();
	if (!child) {
		execl("/proc/self/exe", "test_task", "memory", NULL);
		_exit(127);
	}
	munmap(fat, bytes);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void started_with_more_memory_than_it_has(void **state)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	assert_true((uint64_t)usage.ru_maxrss * 1024 > high_water_mark() + (256u << 20));
	memory_is_what_the_kernel_says(state);
}

static long page_bytes; /* the page size that sysconf() returns; 0: the real one */

long __sysconf(int name);

long sysconf(int name)
{
	return name == _SC_PAGESIZE && page_bytes ? page_bytes : __sysconf(name);
}

/* The kernel counts memory in pages, which have 16 or 64 KiB on some aarch64 machines. */
static void a_page_has_the_size_that_it_has(void **state)
{
	(void)state;
	for (long bytes = 16 << 10; bytes <= 64 << 10; bytes *= 4) {
		uint64_t own = rss_bytes(), large;

		page_bytes = bytes;
		large = task_rss_bytes();
		page_bytes = 0;
		own = (own + rss_bytes()) / 2 * (uint64_t)bytes / (uint64_t)sysconf(_SC_PAGESIZE);
		assert_in_range(large, own - own / 4, own + own / 4);
	}
}

/* The descriptor that is kept for /proc/self/statm; -1: none. */
static int kept_descriptor(void)
{
	int fd;

	return harness_descriptors_of("/statm", &fd) ? fd : -1;
}

/* Closed without the shim, and another file has the number: the memory is still right. */
static void a_kept_descriptor_may_be_taken(void **state)
{
	const char *path = harness_file("statm", 4096); /* not statm's contents */
	int fd, other = open(path, O_RDWR);

	(void)state;
	assert_int_equal(pwrite(other, "1 1 1 1 0 1 0\n", 14, 0), 14);
	task_memory_keep();
	fd = kept_descriptor();
	assert_true(fd >= 200);
	assert_close(task_rss_bytes(), rss_bytes());
	assert_int_equal(syscall(SYS_dup3, other, fd, O_CLOEXEC), fd);
	assert_close(task_rss_bytes(), rss_bytes());
	assert_int_equal(kept_descriptor(), -1);
	assert_int_equal(pread(fd, (char[1]){0}, 1, 0), 1); /* it is not touched */
	close(fd);
	task_memory_keep();
	assert_int_equal(syscall(SYS_close, kept_descriptor()), 0);
	assert_close(task_rss_bytes(), rss_bytes());
	close(other);
	unlink(path);
}

/* A parent's descriptor shows the parent's memory: 64 MiB less. */
static void a_forked_child_has_memory_of_its_own(void **state)
{
	const size_t bytes = 64u << 20;
	int status = -1;
	pid_t child;

	(void)state;
	task_memory_keep();
	child = fork();
	if (!child) {
		char *more = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		const char *why;
		uint64_t got;

		if (more == MAP_FAILED || shim_arm(&why))
			_exit(3);
		unlink(shim_path());
		got = task_rss_bytes();
		_exit(got + (4 << 20) > rss_bytes() && got < rss_bytes() + (4 << 20) ? 0 : 4);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(syscall(SYS_close, kept_descriptor()), 0);
	assert_int_equal(kept_descriptor(), -1); /* only one is kept */
}

/* The task's clocks are those of the caller, around it. */
static void edges_are_when_it_ran(void **state)
{
	struct timespec a, b;
	struct harness_task h;
	struct crema_task *t;
	uint64_t mono = harness_now_ns();

	(void)state;
	clock_gettime(CLOCK_BOOTTIME, &a);
	h = harness_begin();
	harness_spin(2000000);
	t = harness_end(&h);
	clock_gettime(CLOCK_BOOTTIME, &b);
	assert_in_range(t->start_mono_ns, mono, harness_now_ns());
	assert_in_range(t->stop_mono_ns, t->start_mono_ns + 2000000, harness_now_ns());
	assert_true(t->stop_boot_ns >= t->start_boot_ns + 2000000);
	assert_in_range(t->start_boot_ns, (uint64_t)a.tv_sec * 1000000000u + (uint64_t)a.tv_nsec,
			t->stop_boot_ns - 2000000);
	assert_true(t->stop_boot_ns <= (uint64_t)b.tv_sec * 1000000000u + (uint64_t)b.tv_nsec);
	assert_int_equal(t->tid, (uint32_t)gettid());
	harness_free(&h);
}

static uint64_t boot_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Takes this core for a moment as often as it can, until its parent ends. */
static pid_t intruder(void)
{
	struct timespec pause = {.tv_nsec = 1000};
	pid_t child = fork();

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_TIMERSLACK, 1);
	for (;;)
		nanosleep(&pause, NULL);
}

/* A thread that loses its core between two clocks still reports when its task ran: within the
 * caller's own readings of the clock. */
static void edges_are_true_on_a_core_that_others_take(void **state)
{
	enum { INTRUDERS = 3, TASKS = 20000, TOLERANCE_NS = 300 };
	uint64_t early = 0, late = 0, reversed = 0, from, to;
	pid_t child[INTRUDERS];
	cpu_set_t one, all;
	struct harness_task h;
	struct crema_task *t;

	(void)state;
	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	for (int i = 0; i < INTRUDERS; i++)
		child[i] = intruder();
	for (int i = 0; i < TASKS; i++) {
		from = boot_ns();
		h = harness_begin();
		t = harness_end(&h);
		to = boot_ns();
		early += t->start_boot_ns + TOLERANCE_NS < from;
		late += t->stop_boot_ns > to + TOLERANCE_NS;
		reversed += t->start_mono_ns > t->stop_mono_ns;
		harness_free(&h);
	}
	for (int i = 0; i < INTRUDERS; i++) {
		kill(child[i], SIGKILL);
		waitpid(child[i], NULL, 0);
	}
	sched_setaffinity(0, sizeof(all), &all);
	assert_int_equal(early, 0);
	assert_int_equal(late, 0);
	assert_int_equal(reversed, 0);
}

/* Attempts, and those of a thread, are numbered; started and done ones are counted. */
static void tasks_are_numbered_and_counted(void **state)
{
	uint64_t started = crema_shm->totals.tasks_started, done = crema_shm->totals.tasks_done;
	struct harness_task a = harness_begin(), b;
	struct crema_task *first = task_slot(a.owner), *second;

	(void)state;
	assert_int_equal(crema_shm->totals.tasks_started, started + 1);
	assert_int_equal(crema_shm->totals.tasks_done, done);
	harness_end(&a);
	b = harness_begin();
	second = task_slot(b.owner);
	assert_int_equal(second->attempt, first->attempt + 1);
	assert_int_equal(second->thread_sequence, first->thread_sequence + 1);
	harness_end(&b);
	assert_int_equal(crema_shm->totals.tasks_started, started + 2);
	assert_int_equal(crema_shm->totals.tasks_done, done + 2);
	harness_free(&a);
	harness_free(&b);
}

static void references_keep_a_slot(void **state)
{
	struct harness_task h = harness_begin();
	uint64_t name = task_name(h.owner);
	uint32_t *word = &crema_shm->slot_word[h.owner - 1];

	(void)state;
	assert_int_equal(task_ref_name(name), h.owner);
	harness_end(&h);
	assert_int_equal(CREMA_SLOT_REFS(*word), 1);
	assert_int_equal(task_ref_name(name), h.owner); /* late work is still accepted */
	task_unref(h.owner);
	task_unref(h.owner);
	assert_int_equal(CREMA_SLOT_REFS(*word), 0);
	harness_free(&h);
	assert_int_equal(task_ref_name(name), OWNER_NONE); /* the slot is free now */
	h = harness_begin();
	assert_int_equal(task_ref_name(name), OWNER_NONE); /* or another attempt's */
	harness_end(&h);
	harness_free(&h);
}

static void a_full_table_refuses_and_totals_stay_exact(void **state)
{
	static struct harness_task all[CREMA_SHM_TASKS];
	uint64_t refused = crema_shm->totals.tasks_refused;
	uint64_t calls = crema_shm->totals.tasks.count[CREMA_C_other_read_calls];
	struct harness_task h;
	int pipe_fd[2];
	char c = 'x';

	(void)state;
	assert_int_equal(pipe(pipe_fd), 0);
	for (unsigned i = 0; i < CREMA_SHM_TASKS; i++) {
		all[i] = harness_begin();
		assert_true(task_slot(all[i].owner) != NULL);
		harness_end(&all[i]);
	}
	h = harness_begin();
	assert_int_equal(h.owner, OWNER_REFUSED);
	assert_int_equal(write(pipe_fd[1], &c, 1), 1);
	assert_int_equal(read(pipe_fd[0], &c, 1), 1);
	task_stopped(h.owner, segment_end(h.before));
	notify_task_ends(h.owner, CREMA_STATUS_OK);
	assert_int_equal(crema_shm->totals.tasks_refused, refused + 1);
	assert_int_equal(crema_shm->totals.tasks.count[CREMA_C_other_read_calls], calls + 1);
	for (unsigned i = 0; i < CREMA_SHM_TASKS; i++)
		harness_free(&all[i]);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

/* CPU and wall time of a task that does nothing cover the same interval. */
static void short_tasks_have_no_more_cpu_than_wall_time(void **state)
{
	uint64_t cpu = 0, wall = 0;
	enum { TASKS = 2000 };

	(void)state;
	for (int i = 0; i < TASKS; i++) {
		struct harness_task h = harness_begin();
		struct crema_task *t = harness_end(&h);

		cpu += t->own.time[CREMA_T_cpu];
		wall += harness_wall_ns(t);
		harness_free(&h);
	}
	if (cpu > wall + TASKS * UINT64_C(500))
		fail_msg("%.2f us of CPU in %.2f us", (double)cpu / 1e3 / TASKS,
			 (double)wall / 1e3 / TASKS);
}

static void *late_reader(void *arg)
{
	struct harness_task *h = arg;
	struct owner before = segment_begin(h->owner, 1);
	char buf[100];
	FILE *f = fopen("/proc/self/exe", "r");

	/* a data file, read by a pool thread after the task's end */
	assert_non_null(f);
	assert_int_equal(read(fileno(f), buf, sizeof(buf)), 100);
	fclose(f);
	segment_end(before);
	task_unref(h->owner);
	return NULL;
}

static void late_work_is_credited_and_marked(void **state)
{
	struct harness_task h = harness_begin();
	struct crema_task *t;
	pthread_t thread;
	uint32_t version;

	(void)state;
	task_ref(h.owner);
	t = harness_end(&h);
	version = t->version;
	assert_int_equal(t->own.count[CREMA_C_read_bytes], 0);
	assert_int_equal(pthread_create(&thread, NULL, late_reader, &h), 0);
	pthread_join(thread, NULL);
	assert_int_equal(t->own.count[CREMA_C_read_bytes], 100);
	assert_int_equal(t->own.count[CREMA_C_late_bytes], 100);
	assert_int_equal(t->own.count[CREMA_C_pool_segments], 1);
	assert_true(t->version > version);
	harness_free(&h);
}

static void texts_are_kept_once(void **state)
{
	uint32_t a = arena_id("TTbar", 5), b = arena_id("TTbar", 5), c = arena_id("TTba", 4);

	(void)state;
	assert_true(a != 0);
	assert_int_equal(a, b);
	assert_int_not_equal(a, c);
	assert_string_equal(arena_text(a), "TTbar");
	assert_int_equal(arena_id("", 0), 0);
}

static void *interner(void *arg)
{
	uint32_t *ids = arg;
	char text[32];

	for (int i = 0; i < 500; i++)
		ids[i] = arena_id(text, (uint32_t)snprintf(text, sizeof(text), "text %d", i));
	return NULL;
}

static void texts_are_kept_once_among_threads(void **state)
{
	static uint32_t ids[4][500];
	pthread_t threads[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, interner, ids[i]), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int i = 1; i < 4; i++)
		assert_memory_equal(ids[0], ids[i], sizeof(ids[0]));
}

static void a_full_arena_says_so(void **state)
{
	char text[1000];
	uint64_t before = crema_shm->totals.strings_refused;
	uint32_t id = 1;

	(void)state;
	memset(text, 'x', sizeof(text));
	for (int i = 0; i < 400 && id; i++) {
		memcpy(text, &i, sizeof(i));
		id = arena_id(text, sizeof(text));
	}
	assert_int_equal(id, 0);
	assert_true(crema_shm->totals.strings_refused > before);
	assert_true(crema_shm->strings_used <= CREMA_SHM_STRINGS + 2 * sizeof(text));
}

static void a_forked_child_is_dormant(void **state)
{
	struct harness_task h = harness_begin();
	uint64_t before = crema_shm->totals.tasks_started;
	int status = -1, pipe_fd[2];
	char c = 'x';
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(pipe_fd), 0);
	pid = fork();
	if (pid == 0) {
		int ok = !shim_armed() && write(pipe_fd[1], &c, 1) == 1 &&
			 read(pipe_fd[0], &c, 1) == 1;

		_exit(ok ? 7 : 8);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 7);
	assert_int_equal(crema_shm->goodbye, 0); /* its _exit was not this process's */
	assert_int_equal(crema_shm->totals.tasks_started, before);
	harness_end(&h);
	assert_int_equal(task_slot(h.owner)->own.count[CREMA_C_other_read_calls], 0);
	harness_free(&h);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

static void arming_fails_cleanly_under_a_file_limit(void **state)
{
	int status = -1;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		struct rlimit limit = {1 << 20, 1 << 20};
		const char *why = "";

		setrlimit(RLIMIT_FSIZE, &limit);
		_exit(shim_arm(&why) < 0 && strstr(why, "RLIMIT_FSIZE") ? 7 : 8);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 7);
}

/* Runs itself; started by memory_before_exec_is_not_ours. */
static int run_memory(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(started_with_more_memory_than_it_has),
	};

	return cmocka_run_group_tests_name("shim task, started by a large process", tests,
					   harness_setup, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slot_goes_through_its_states),
		cmocka_unit_test(memory_is_what_the_kernel_says),
		cmocka_unit_test(memory_before_exec_is_not_ours),
		cmocka_unit_test(a_page_has_the_size_that_it_has),
		cmocka_unit_test(a_kept_descriptor_may_be_taken),
		cmocka_unit_test(a_forked_child_has_memory_of_its_own),
		cmocka_unit_test(edges_are_when_it_ran),
		cmocka_unit_test(edges_are_true_on_a_core_that_others_take),
		cmocka_unit_test(tasks_are_numbered_and_counted),
		cmocka_unit_test(references_keep_a_slot),
		cmocka_unit_test(a_full_table_refuses_and_totals_stay_exact),
		cmocka_unit_test(short_tasks_have_no_more_cpu_than_wall_time),
		cmocka_unit_test(late_work_is_credited_and_marked),
		cmocka_unit_test(texts_are_kept_once),
		cmocka_unit_test(texts_are_kept_once_among_threads),
		cmocka_unit_test(a_forked_child_is_dormant),
		cmocka_unit_test(arming_fails_cleanly_under_a_file_limit),
		cmocka_unit_test(a_full_arena_says_so),
	};

	if (argc == 2 && !strcmp(argv[1], "memory"))
		return run_memory();
	return cmocka_run_group_tests_name("shim task", tests, harness_setup, NULL);
}
