/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.c - kept clocks: the word in the rseq area, and the kernel's last values. */
#define _GNU_SOURCE
#include "shim/count/clock.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>

#include "shim/count/thread.h"
#include "shim/libc/real.h"
#include "shim/libc/sys.h"

/* The kernel's ABI (linux/rseq.h), which older headers do not have. */
struct rseq_area {
	uint32_t cpu_id_start, cpu_id;
	uint64_t rseq_cs;
	uint32_t flags, node_id, mm_cid;
};

struct critical_section {
	uint32_t version, flags;
	const void *start;
	uint64_t bytes;
	const void *abort;
} __attribute__((aligned(32)));

#if defined(__x86_64__)
#define SIGNATURE 0x53053053u
#define NEVER_RUN "ud2"
#define RSEQ_CALL 334
#else
#define SIGNATURE 0xd428bc00u
#define NEVER_RUN "brk #0"
#define RSEQ_CALL 293
#endif
#define SMALLEST_AREA 32 /* bytes that every glibc registers for it */

/* The kernel checks the signature before the address where it would send a thread that lost its
 * core inside the section. No thread is ever there. */
extern const char crema_section_start[] __attribute__((visibility("hidden")));
extern const char crema_section_abort[] __attribute__((visibility("hidden")));
__asm__(".pushsection .text\n"
	".balign 8\n"
	".hidden crema_section_start, crema_section_abort\n"
	".globl crema_section_start, crema_section_abort\n"
	"crema_section_start:\n"
	"	" NEVER_RUN "\n"
	"	.balign 4\n"
#if defined(__x86_64__)
	"	.byte 0x0f, 0xb9, 0x3d\n" /* ud1, so that the signature disassembles */
	"	.long 0x53053053\n"
#else
	"	.inst 0xd428bc00\n"
#endif
	"crema_section_abort:\n"
	"	" NEVER_RUN "\n"
	".popsection\n");

static const struct critical_section never_entered = {
	.start = crema_section_start, .bytes = 1, .abort = crema_section_abort};
#define OURS ((uint64_t)(uintptr_t)&never_entered)

static ptrdiff_t area_offset; /* from the thread pointer; 0: clocks are not kept */
static uint64_t kept_ticks;

/* Kept values are valid while the word is ours and `since` is recent enough. A change of `asked`
 * shows that a signal handler interrupted and read the clocks itself. */
static __thread struct {
	uint64_t since, tick, cpu_ns, turn, switches;
	uint32_t asked, has_cpu, turn_is_of_word; /* or of `switches` */
} kept;

#define BARRIER() __asm__ volatile("" ::: "memory")

static char *thread_pointer(void)
{
	char *p;

#if defined(__x86_64__)
	__asm__("mov %%fs:0, %0" : "=r"(p));
#else
	__asm__("mrs %0, tpidr_el0" : "=r"(p));
#endif
	return p;
}

static volatile struct rseq_area *area(void)
{
	return (volatile struct rseq_area *)(thread_pointer() + area_offset);
}

static uint32_t forget(void)
{
	uint32_t asked =
		ADD(&kept.asked, 1) + 1; /* first: what a handler keeps from here on shows */

	BARRIER();
	kept.has_cpu = 0;
	BARRIER();
	return asked;
}

void clock_forget(void)
{
	forget();
	kept.turn++;
	kept.turn_is_of_word = 0;
}

void clock_end(void)
{
	if (area_offset && area()->rseq_cs == OURS)
		area()->rseq_cs = 0;
}

/* 0: the thread's area is not or no longer registered, so the kernel does not clear the word. */
static int registered(void)
{
	return (int32_t)area()->cpu_id >= 0;
}

/* 1: the thread has kept its core from `kept.since` until `now` at least. */
static int holds(uint64_t now)
{
	return now - kept.since < kept_ticks && area()->rseq_cs == OURS && registered();
}

/* Begins to keep, before the kernel is queried. 0: it cannot be kept. A word that is still ours is
 * not stored again: that would hide a switch that clears it at this moment. */
static int begin(void)
{
	uint32_t asked;
	uint64_t word;

	if (!area_offset)
		return 0;
	if (kept.turn_is_of_word && holds(ticks()))
		return 1;
	asked = forget();
	word = area()->rseq_cs;
	if ((word && word != OURS) || !registered())
		return 0;
	kept.since = ticks();
	BARRIER();
	if (!word)
		area()->rseq_cs = OURS;
	BARRIER();
	if (!word || !kept.turn_is_of_word)
		kept.turn++;
	kept.turn_is_of_word = 1;
	if (unlikely(kept.asked != asked)) /* what a handler kept may date from before a switch */
		forget();
	return 1;
}

uint64_t clock_cpu_asked_ns(void)
{
	int keeps = begin();
	uint32_t asked = kept.asked;
	uint64_t before, after, cpu;

	if (!keeps)
		return clock_ns(CLOCK_THREAD_CPUTIME_ID);
	kept.has_cpu = 0;
	BARRIER();
	before = ticks();
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	after = ticks();
	kept.tick = before + (after - before) / 2;
	kept.cpu_ns = cpu;
	BARRIER();
	kept.has_cpu = 1;
	BARRIER();
	if (unlikely(kept.asked != asked || after - before > kept_ticks / 16))
		kept.has_cpu = 0; /* a handler's, or an interrupt came in between */
	return cpu;
}

uint64_t clock_cpu_ns(void)
{
	uint32_t asked = kept.asked;
	uint64_t now, cpu;

	if (unlikely(!area_offset || !kept.has_cpu))
		return clock_cpu_asked_ns();
	BARRIER();
	now = ticks();
	cpu = kept.cpu_ns + ticks_ns(now - kept.tick);
	BARRIER();
	if (likely(holds(now) && kept.asked == asked && kept.has_cpu))
		return cpu;
	return clock_cpu_asked_ns();
}

/* If no word shows the turn, the count of switches does. A signal handler that runs after the
 * comparison counts the switch again; one that ran before it has counted it, and the turn is read
 * after that. */
static uint64_t turn_by_count(uint64_t switches)
{
	int is_new = kept.turn_is_of_word || switches != kept.switches;

	BARRIER();
	kept.turn += (uint64_t)is_new;
	kept.switches = switches;
	kept.turn_is_of_word = 0;
	return kept.turn;
}

uint64_t clock_usage(struct rusage *ru)
{
	int keeps = begin();
	uint64_t turn = kept.turn;

	memset(ru, 0, sizeof(*ru));
	SYS2(SYS_getrusage, 1 /* RUSAGE_THREAD */, ru);
	return keeps ? turn : turn_by_count((uint64_t)ru->ru_nvcsw + (uint64_t)ru->ru_nivcsw);
}

/* The word is valid at any age: a thread that keeps its core for long is in the same turn. */
static int is_same_turn(void)
{
	return area_offset && kept.turn_is_of_word && area()->rseq_cs == OURS && registered();
}

uint64_t clock_turn(void)
{
	uint64_t turn = kept.turn;
	struct rusage ru;

	BARRIER();
	if (is_same_turn() && turn == kept.turn)
		return turn;
	return begin() ? kept.turn : clock_usage(&ru);
}

int clock_is_kept(void)
{
	return area_offset != 0;
}

/* 1 if the area is the one that this thread has registered, with our signature: registering it
 * again fails in a specific way, and has no effect if another one is registered. */
static int has_our_signature(void)
{
	uint64_t bytes = getauxval(27 /* AT_RSEQ_FEATURE_SIZE */), align = getauxval(28);

	if (!registered())
		return 0;
	if (SYS4(RSEQ_CALL, area(), SMALLEST_AREA, 0, SIGNATURE) == -EBUSY)
		return 1;
	if (align)
		bytes = (bytes + align - 1) / align * align;
	return bytes > SMALLEST_AREA && SYS4(RSEQ_CALL, area(), bytes, 0, SIGNATURE) == -EBUSY;
}

/* Tests whether a sleeping thread finds the word cleared. Newer kernels do so only if its core or
 * its number in the process has changed; if neither has, the result is certain. */
static int is_cleared_by_a_switch(void)
{
	struct timespec shortest = {0, 1000};
	struct rusage before, after;
	int certain = 0;

	for (int i = 0; i < 32 && certain < 4; i++) {
		uint32_t cpu = area()->cpu_id, number = area()->mm_cid;

		SYS2(SYS_getrusage, 1 /* RUSAGE_THREAD */, &before);
		area()->rseq_cs = OURS;
		SYS2(SYS_nanosleep, &shortest, NULL);
		SYS2(SYS_getrusage, 1 /* RUSAGE_THREAD */, &after);
		if (before.ru_nvcsw == after.ru_nvcsw)
			continue;
		if (area()->rseq_cs)
			return 0;
		certain += area()->cpu_id == cpu && area()->mm_cid == number;
	}
	return certain == 4;
}

void clock_begin(void)
{
	const ptrdiff_t *offset = real_find("__rseq_offset", NULL);
	const unsigned int *bytes = real_find("__rseq_size", NULL);

	clock_forget();
	area_offset = 0;
	if (!offset || !bytes || *bytes < 20)
		return;
	kept_ticks = ((uint64_t)CLOCK_KEPT_NS << 32) / crema_shm->tsc_mult;
	area_offset = *offset;
	clock_end();
	if (has_our_signature() && !area()->rseq_cs && is_cleared_by_a_switch())
		return;
	clock_end();
	area_offset = 0;
}
