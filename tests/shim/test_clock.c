/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_clock.c - kept clocks against the kernel's, queried before and after: while other programs
 * take the core, signals arrive, threads migrate, processes fork, and the program uses rseq itself.
 *
 * A kept CPU clock may be ahead by what interrupts or a hypervisor took since the last query, 0.1
 * ms ago at most; most are far closer. Switches are exact.
 */
#include "harness.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kept.h"
#include "zstd_trace.h"
#include "shim/libc/sys.h"

#define US 1000ull
#define MS 1000000ull
#if defined(__x86_64__)
#define RSEQ_SIG 0x53053053
#else
#define RSEQ_SIG 0xd428bc00
#endif

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

static volatile uint64_t *word(void)
{
	return (volatile uint64_t *)((char *)__builtin_thread_pointer() + *(&__rseq_offset) + 8);
}

/* Uses CPU for a while, in pieces of 0 to 30 us. */
static void compare_for(struct tally *t, uint64_t ns)
{
	uint64_t end = harness_now_ns() + ns;
	unsigned seed = 1;

	for (; harness_now_ns() < end; compare_once(t)) {
		uint64_t piece = cpu_ns() + (uint64_t)rand_r(&seed) % (30 * US);

		while (cpu_ns() < piece)
			;
		/* so that the next comparison uses a kept value */
		clock_cpu_ns();
		clock_turn();
		for (volatile int i = rand_r(&seed) % 3000; i > 0; i--)
			;
	}
}

static volatile int stop;

static void *spinner(void *arg)
{
	harness_pin(*(int *)arg);
	while (!stop)
		;
	return NULL;
}

static void a_calm_thread(void **state)
{
	struct tally t = {0};

	(void)state;
	compare_for(&t, 20 * MS);
	assert_close(&t);
	for (int i = 0; i < 100; i++) {
		harness_spin(
			2 * CLOCK_KEPT_NS); /* the CPU clock is read again, the turn is unchanged */
		compare_once(&t);
	}
	assert_in_range(t.for_nothing, 0, t.looks / 20);
}

static void a_thread_whose_core_is_taken(void **state)
{
	struct tally t = {0};
	uint64_t before;
	pthread_t other[3];
	cpu_set_t all;
	int core = 0;

	(void)state;
	sched_getaffinity(0, sizeof(all), &all);
	stop = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&other[i], NULL, spinner, &core), 0);
	harness_pin(core);
	before = switches_so_far();
	compare_for(&t, 600 * MS);
	assert_true(switches_so_far() > before + 10);
	stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(other[i], NULL);
	sched_setaffinity(0, sizeof(all), &all);
	assert_close(&t);
}

static void a_thread_that_sleeps_and_yields(void **state)
{
	struct timespec shortest = {0, 1000};
	struct tally t = {0};

	(void)state;
	for (int i = 0; i < 500; i++) {
		clock_cpu_ns();
		clock_turn();
		if (i % 2)
			syscall(SYS_nanosleep, &shortest, NULL);
		else
			sched_yield();
		compare_once(&t);
	}
	assert_close(&t);
}

static struct tally in_handler;

static void on_alarm(int signal)
{
	struct timespec shortest = {0, 1000};

	(void)signal;
	clock_cpu_ns();
	clock_turn();
	compare_once(&in_handler);
	if (in_handler.looks % 4 == 0)
		syscall(SYS_nanosleep, &shortest, NULL);
	compare_once(&in_handler);
}

/* They arrive between any two instructions, read the clocks and lose the core. */
static void a_storm_of_signals(void **state)
{
	struct itimerval often = {{0, 150}, {0, 150}}, never = {{0, 0}, {0, 0}};
	struct sigaction act = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	struct tally t = {0};

	(void)state;
	memset(&in_handler, 0, sizeof(in_handler));
	assert_int_equal(sigaction(SIGALRM, &act, NULL), 0);
	setitimer(ITIMER_REAL, &often, NULL);
	compare_for(&t, 600 * MS);
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_DFL);
	assert_true(in_handler.looks > 100);
	assert_close(&in_handler);
	/* A handler between two of the kernel's values is in neither, but in the compared one. */
	assert_int_equal(t.missed, 0);
	assert_in_range(t.most_ns, 0, CLOCK_KEPT_NS + CLOSE_NS);
}

static void *mover(void *arg)
{
	pid_t tid = *(pid_t *)arg;
	cpu_set_t all, one;
	int cpu = 0;

	sched_getaffinity(0, sizeof(all), &all);
	while (!stop) {
		do
			cpu = (cpu + 1) % CPU_SETSIZE;
		while (!CPU_ISSET(cpu, &all));
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(tid, sizeof(one), &one);
		usleep(300);
	}
	sched_setaffinity(tid, sizeof(all), &all);
	return NULL;
}

static void a_thread_that_is_moved(void **state)
{
	pid_t tid = gettid();
	struct tally t = {0};
	pthread_t other;

	(void)state;
	stop = 0;
	assert_int_equal(pthread_create(&other, NULL, mover, &tid), 0);
	compare_for(&t, 400 * MS);
	stop = 1;
	pthread_join(other, NULL);
	assert_close(&t);
}

static void *comparer(void *arg)
{
	compare_for(arg, 300 * MS);
	return NULL;
}

static void threads_at_the_same_time(void **state)
{
	struct tally t[6] = {{0}};
	pthread_t threads[6];

	(void)state;
	for (int i = 0; i < 6; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, comparer, &t[i]), 0);
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 6; i++)
		assert_close(&t[i]);
}

/* A thread whose area is not registered (a library has taken it over): the word is never
 * cleared. */
static void *unregistered(void *arg)
{
	char *area = (char *)word() - 8;
	struct tally *t = arg;

	if (clock_is_kept() && syscall(SYS_rseq, area, 32, 1 /* unregister */, RSEQ_SIG))
		return NULL;
	for (int i = 0; i < 300; i++) {
		clock_cpu_ns();
		clock_turn();
		sched_yield();
		syscall(SYS_nanosleep, &(struct timespec){0, 1}, NULL);
		compare_once(t);
	}
	return NULL;
}

static void a_thread_without_an_area(void **state)
{
	struct tally t = {0};
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, unregistered, &t), 0);
	pthread_join(thread, NULL);
	assert_close(&t);
	assert_int_equal(t.far, 0);
}

/* A forked child's clock begins at 0, whatever its parent had kept. */
static void a_forked_child(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		struct tally t = {0};
		int status = -1;
		pid_t child;

		clock_cpu_ns();
		child = fork();
		if (!child) {
			clock_forget();
			for (int k = 0; k < 200; k++)
				compare_once(&t);
			_exit(t.missed || t.most_ns > CLOCK_KEPT_NS + CLOSE_NS);
		}
		for (int k = 0; k < 200; k++)
			compare_once(&t);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		assert_close(&t);
	}
}

/* A vfork child has its parent's memory but a separate clock, and waits with it. */
static void a_vfork_child(void **state)
{
	struct tally t = {0};

	(void)state;
	for (volatile int i = 0; i < 100; i++) {
		int status = -1;
		pid_t child;

		clock_cpu_ns();
		clock_turn();
		child = vfork();
		if (!child) {
			clock_cpu_ns();
			clock_turn();
			if (i % 4 == 0)
				syscall(SYS_nanosleep, &(struct timespec){0, 200000}, NULL);
			clock_cpu_ns();
			syscall(SYS_exit_group, 0);
		}
		for (int k = 0; k < 20; k++)
			compare_once(&t);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	assert_close(&t);
}

/* The shim's value in the word; a switch may clear it at any time. */
static uint64_t our_section(void)
{
	uint64_t found = 0;

	for (int i = 0; i < 1000 && !found; i++) {
		clock_cpu_asked_ns();
		found = *word();
	}
	assert_true(found != 0);
	return found;
}

/* If the word were not cleared, its CPU would be trusted for 0.1 ms. */
static void a_word_that_stays(void **state)
{
	uint64_t ours = our_section();
	struct tally t = {0};

	(void)state;
	for (int i = 0; i < 200; i++) {
		clock_cpu_ns();
		syscall(SYS_nanosleep, &(struct timespec){0, 200000}, NULL);
		*word() = ours;
		compare_cpu(&t);
	}
	assert_close(&t);
}

/* Another library's critical section is in the word: it stays there until the kernel clears it. */
static void a_section_of_somebody_else(void **state)
{
	static struct {
		uint32_t version, flags;
		uint64_t start, bytes, abort;
	} other __attribute__((aligned(32)));
	struct timespec shortest = {0, 1000};
	struct tally t = {0};
	int stayed = 0;
	uint64_t ours;

	(void)state;
	ours = our_section();
	memcpy(&other, (void *)(uintptr_t)ours, sizeof(other));
	for (int i = 0; i < 300; i++) {
		*word() = (uintptr_t)&other;
		compare_once(&t);
		stayed += *word() == (uintptr_t)&other;
		if (i % 3 == 0)
			syscall(SYS_nanosleep, &shortest, NULL);
		compare_once(&t);
	}
	assert_true(stayed > 100); /* comparisons without a switch */
	assert_close(&t);
	*word() = 0;
	assert_int_equal(our_section(), ours);
}

/* --- a kernel that keeps the word, and one that does not allow the test */

static uint64_t section;

/* Sleeps as requested, but restores the word afterwards. */
static void sleep_and_keep(int signal)
{
	struct timespec t = {0, 1000};

	(void)signal;
	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL);
	*word() = section;
}

static void answer_nanosleep(uint32_t action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_nanosleep, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {4, code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(2);
}

/* Exits with 0 if clocks are not kept, and correct. */
static void try_under(uint32_t action)
{
	struct tally t = {0};

	answer_nanosleep(action);
	clock_begin();
	if (clock_is_kept() || *word() == section)
		_exit(3);
	for (int i = 0; i < 200; i++)
		compare_once(&t);
	_exit(t.far || t.missed ? 4 : 0);
}

static void a_kernel_that_does_not_clear(void **state)
{
	struct sigaction act = {.sa_handler = sleep_and_keep};
	int status = -1;
	pid_t child;

	(void)state;
	section = our_section();
	for (int how = 0; how < 2; how++) {
		child = fork();
		if (!child) {
			sigaction(SIGSYS, &act, NULL);
			try_under(how ? SECCOMP_RET_TRAP : SECCOMP_RET_ERRNO | EPERM);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

/* glibc has registered the area; on x86 Linux up to 6.18 clears the word at each switch, elsewhere
 * all versions do. */
static int must_be_kept(void)
{
	int major = 0, minor = 0;
	struct utsname u;

	uname(&u);
	sscanf(u.release, "%d.%d", &major, &minor);
	return &__rseq_size && __rseq_size >= 20 &&
	       (strcmp(u.machine, "x86_64") || major < 6 || (major == 6 && minor < 19));
}

static void clocks_are_kept(void **state)
{
	(void)state;
	if (must_be_kept())
		assert_true(clock_is_kept());
	if (!&__rseq_size || !__rseq_size)
		assert_false(clock_is_kept());
}

/* --- what is computed from them */

/* A codec's CPU under load: the kernel's sum is larger by the cost of its own queries. */
static void a_codec_has_its_cpu(void **state)
{
	const struct trace frame = {.version = 10506, .uncompressed_bytes = 1};
	struct itimerval often = {{0, 700}, {0, 700}}, never = {{0, 0}, {0, 0}};
	struct sigaction act = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	enum { CALLS = 1000 };
	uint64_t truth = 0, got;
	struct harness_task h;
	pthread_t other[2];
	unsigned seed = 1;
	cpu_set_t all;
	int core = 0;

	(void)state;
	sched_getaffinity(0, sizeof(all), &all);
	stop = 0;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&other[i], NULL, spinner, &core), 0);
	harness_pin(core);
	assert_int_equal(sigaction(SIGALRM, &act, NULL), 0);
	setitimer(ITIMER_REAL, &often, NULL);
	h = harness_begin();
	for (int i = 0; i < CALLS; i++) {
		uint64_t begin = cpu_ns();
		unsigned long long name = ZSTD_trace_decompress_begin(NULL);

		for (volatile int k = rand_r(&seed) % 200000; k > 0; k--)
			;
		ZSTD_trace_decompress_end(name, &frame);
		truth += cpu_ns() - begin;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_DFL);
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(other[i], NULL);
	sched_setaffinity(0, sizeof(all), &all);
	got = harness_end(&h)->own.count[CREMA_C_decompress_cpu_ns];
	assert_int_equal(task_slot(h.owner)->own.count[CREMA_C_decompress_calls], CALLS);
	assert_in_range(got, truth - truth / 50 - CALLS * 6 * US, truth + truth / 100);
	harness_free(&h);
}

/* The CPU of consecutive tasks equals the kernel's, except for the time between them. */
static void tasks_have_all_the_cpu(void **state)
{
	enum { TASKS = 100 };
	uint64_t begin = cpu_ns(), sum = 0, truth;
	struct timespec shortest = {0, 1000};

	(void)state;
	for (int i = 0; i < TASKS; i++) {
		struct harness_task h = harness_begin();

		for (int k = 0; k < 10; k++) {
			harness_spin(100 * US);
			nanosleep(&shortest, NULL); /* with kept clocks before and after */
		}
		sum += harness_end(&h)->own.time[CREMA_T_cpu];
		harness_free(&h);
	}
	truth = cpu_ns() - begin;
	assert_in_range(sum, truth - TASKS * 100 * US, truth);
}

#define EITHER_WAY                                                                                 \
	cmocka_unit_test(clocks_are_kept), cmocka_unit_test(a_calm_thread),                        \
		cmocka_unit_test(a_thread_whose_core_is_taken),                                    \
		cmocka_unit_test(a_thread_that_sleeps_and_yields),                                 \
		cmocka_unit_test(a_storm_of_signals), cmocka_unit_test(a_thread_that_is_moved),    \
		cmocka_unit_test(threads_at_the_same_time), cmocka_unit_test(a_forked_child),      \
		cmocka_unit_test(a_vfork_child), cmocka_unit_test(a_thread_without_an_area),       \
		cmocka_unit_test(a_codec_has_its_cpu), cmocka_unit_test(tasks_have_all_the_cpu)

int main(int argc, char **argv)
{
	const struct CMUnitTest always[] = {EITHER_WAY};
	const struct CMUnitTest kept[] = {
		EITHER_WAY,
		cmocka_unit_test(a_word_that_stays),
		cmocka_unit_test(a_section_of_somebody_else),
		cmocka_unit_test(a_kernel_that_does_not_clear),
	};
	int failed;

	(void)argc;
	harness_arm();
	if (!clock_is_kept())
		return cmocka_run_group_tests_name("shim clock, asked", always, NULL, NULL);
	failed = cmocka_run_group_tests_name("shim clock, kept", kept, NULL, NULL);
	fflush(stdout);
	setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
	if (!failed)
		execl("/proc/self/exe", argv[0], NULL);
	return failed;
}
