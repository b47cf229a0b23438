/* SPDX-License-Identifier: BSD-3-Clause */
/* test_clock_steps.c - a signal between any two instructions of a query to kept clocks, whose
 * handler queries them as well: with the processor's single steps, on x86. */
#include "harness.h"

#if !defined(__x86_64__)
int main(void)
{
	return 0; /* no single steps here */
}
#else
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "kept.h"

enum { ASKS_FIRST, SLEEPS_FIRST, ONLY_SLEEPS };
static int steps, step_wanted, how;
/* ASan's own instructions are many. */
#ifdef __SANITIZE_ADDRESS__
#define STRIDE 7
#else
#define STRIDE 1
#endif

/* At one instruction: the core is lost after a query, before one, or without one. */
static void on_step(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	if (++steps < step_wanted)
		return;
	if (how != ASKS_FIRST)
		syscall(SYS_nanosleep, &(struct timespec){0, 1000}, NULL);
	if (how != ONLY_SLEEPS) {
		clock_cpu_ns();
		clock_turn();
	}
	if (how == ASKS_FIRST)
		syscall(SYS_nanosleep, &(struct timespec){0, 1000}, NULL);
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100;
}

/* From here the processor traps after each instruction, or stops doing so. */
#define STEP(how)                                                                                  \
	__asm__ volatile("lea -128(%%rsp), %%rsp\n pushfq\n " how " (%%rsp)\n popfq\n"             \
			 "lea 128(%%rsp), %%rsp" ::                                                \
				 : "memory", "cc")

static uint64_t ask_in_steps(int what)
{
	uint64_t turn = 0;

	STEP("orl $0x100,");
	if (what == 0)
		clock_cpu_ns();
	else if (what == 1)
		turn = clock_turn();
	else
		clock_cpu_asked_ns();
	STEP("andl $~0x100,");
	return turn;
}

/* A handler between any two instructions of a query. */
static void a_signal_at_each_instruction(void **state)
{
	struct sigaction act = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct tally t = {0};
	uint64_t turn;
	int reached = 0, stale = 0;

	(void)state;
	assert_int_equal(sigaction(SIGTRAP, &act, NULL), 0);
	for (int what = 0; what < 9; what++) {
		steps = 0;
		how = what / 3;
		for (step_wanted = 1; steps >= step_wanted - STRIDE; step_wanted += STRIDE) {
			clock_cpu_ns();
			turn = clock_turn();
			syscall(SYS_nanosleep, &(struct timespec){0, 1000}, NULL);
			steps = 0;
			stale += ask_in_steps(what % 3) == turn;
			compare_once(&t);
			reached += steps == step_wanted;
		}
	}
	signal(SIGTRAP, SIG_DFL);
	assert_true(reached > (clock_is_kept() ? 200 : 20) / STRIDE);
	assert_int_equal(stale, 0);
	assert_close(&t);
	assert_in_range(t.far, 0, t.looks / 50);
}

/* Kept clocks, then those that query the kernel every time. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_signal_at_each_instruction)};
	int failed;

	(void)argc;
	harness_arm();
	failed = cmocka_run_group_tests_name("shim clock, step by step", tests, NULL, NULL);
	fflush(stdout);
	setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
	if (!failed && clock_is_kept())
		execl("/proc/self/exe", argv[0], NULL);
	return failed;
}
#endif
