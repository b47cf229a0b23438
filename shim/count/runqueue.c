/* SPDX-License-Identifier: BSD-3-Clause */
/* runqueue.c - reads of the run queue delay, and the waits that are held until the next one. */
#include "shim/count/runqueue.h"

#include "shim/count/clock.h"
#include "shim/count/kept_file.h"
#include "shim/libc/sys.h"

#define FILE_NAME "/proc/thread-self/schedstat"
/* Of threads that run tasks. A forked child drops those of its parent's threads. */
static struct kept {
	uint32_t taken;
	struct kept_file file;
} kept[RUNQUEUE_KEPT];
static __thread struct kept *mine;

static __thread int wanted; /* from the next read on */
int runqueue_keeps;

void runqueue_keep(void)
{
	wanted = runqueue_keeps && !mine;
}

static void keep(void)
{
	wanted = 0;
	for (uint32_t i = 0; i < RUNQUEUE_KEPT && !mine; i++)
		if (!LOAD(&kept[i].taken) &&
		    !__atomic_exchange_n(&kept[i].taken, 1, __ATOMIC_ACQ_REL))
			mine = &kept[i];
	if (mine)
		kept_file_open(&mine->file, FILE_NAME);
}

void runqueue_drop(void)
{
	struct kept *k = mine;

	mine = NULL;
	wanted = 0;
	if (!k)
		return;
	kept_file_drop(&k->file);
	__atomic_store_n(&k->taken, 0, __ATOMIC_RELEASE);
}

void runqueue_keep_none(void)
{
	mine = NULL;
	wanted = 0;
}

void runqueue_drop_all(void)
{
	runqueue_keep_none();
	for (uint32_t i = 0; i < RUNQUEUE_KEPT; i++) {
		kept_file_drop(&kept[i].file);
		STORE(&kept[i].taken, 0);
	}
}

int64_t runqueue_delay_ns(void)
{
	char buf[96], *p = buf;
	int64_t v = 0;
	long n;

	if (unlikely(wanted))
		keep();
	n = mine ? kept_file_read(&mine->file, FILE_NAME, buf, sizeof(buf))
		 : sys_slurp(FILE_NAME, buf, sizeof(buf));
	if (n <= 0)
		return n < 0 ? n : -1;
	while (*p >= '0' && *p <= '9')
		p++;
	while (*p == ' ')
		p++;
	for (; *p >= '0' && *p <= '9'; p++)
		v = v * 10 + (*p - '0');
	return v;
}

enum { HELD_WAITS = 64, HELD_NS = 4000000, HELD_ONE_NS = 500000 };

static __thread struct {
	int64_t delay_ns; /* at the last read, or -errno */
	uint64_t turn;
	int valid;
} look;

static __thread struct {
	int waits, time_id;
	uint64_t sum_ns, cpu_ns, tick, turn; /* cpu, tick, turn: at the end of the last */
} held;

/* A new thread whose delay was never read. */
static __thread struct {
	int on;
	uint64_t tick, cpu_ns;
	int64_t delay_ns; /* before its first instruction */
} young;

void runqueue_born(uint64_t created_tick)
{
	uint64_t waited;

	young.on = 1;
	young.tick = ticks();
	young.cpu_ns = clock_cpu_ns();
	waited = ticks_ns(young.tick - created_tick);
	young.delay_ns = waited > young.cpu_ns ? (int64_t)(waited - young.cpu_ns) : 0;
}

/* 1 while the possible delay is too small for a read. */
static int is_young_at(uint64_t tick, uint64_t cpu_ns)
{
	young.on = ticks_ns(tick - young.tick) <
		   clock_cpu_between(young.cpu_ns, cpu_ns) + RUNQUEUE_YOUNG_NS;
	if (!young.on) { /* the first read finds what it lost since then */
		look.delay_ns = young.delay_ns;
		look.turn = ~0ull;
		look.valid = 1;
	}
	return young.on;
}

static int is_young(void)
{
	return unlikely(young.on) && is_young_at(ticks(), clock_cpu_ns());
}

static void look_again(uint64_t turn)
{
	look.delay_ns = runqueue_delay_ns();
	if (look.delay_ns >= 0 && look.delay_ns < young.delay_ns)
		look.delay_ns = young.delay_ns;
	look.turn = turn;
	look.valid = 1;
}

int runqueue_looked_at(uint64_t turn)
{
	return look.valid && look.turn == turn;
}

static int64_t old_ns(uint64_t turn)
{
	if (!runqueue_looked_at(turn))
		look_again(turn);
	return look.delay_ns;
}

int64_t runqueue_ns_at(uint64_t turn, uint64_t tick, uint64_t cpu_ns)
{
	if (unlikely(young.on) && is_young_at(tick, cpu_ns))
		return young.delay_ns;
	return old_ns(turn);
}

static uint64_t since_look(uint64_t turn)
{
	int64_t before;

	if (is_young())
		return 0;
	before = look.valid ? look.delay_ns : -1;
	look_again(turn);
	return before >= 0 && look.delay_ns > before ? (uint64_t)(look.delay_ns - before) : 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void take_back(struct crema_thread *t, uint64_t delay_ns)
{
	if (held.waits)
		t->seg.time[held.time_id] -= least(delay_ns, held.sum_ns);
	held.waits = 0;
	held.sum_ns = 0;
}

/* Time without CPU since the end of the last held wait: it contains all of a preemption's delay. */
static uint64_t gap_ns(void)
{
	uint64_t cpu = clock_cpu_between(held.cpu_ns, clock_cpu_ns());
	uint64_t gap = ticks_ns(ticks() - held.tick);

	return gap > cpu ? gap - cpu : 0;
}

static void settle(struct crema_thread *t, uint64_t turn)
{
	uint64_t outside = turn != held.turn ? gap_ns() : 0, delay = since_look(turn);

	take_back(t, delay - least(delay, outside));
}

void runqueue_wait_begins(struct crema_thread *t, int time_id, uint64_t turn)
{
	if (held.waits && (held.time_id != time_id || held.turn != turn))
		settle(t, turn);
	else if (!held.waits && !is_young())
		old_ns(turn);
}

int runqueue_hold(struct crema_thread *t, int time_id, const struct op_end *e)
{
	if (look.delay_ns < 0 || e->gross_ns > HELD_ONE_NS || held.waits >= HELD_WAITS ||
	    held.sum_ns + e->gross_ns > HELD_NS || (held.waits && held.time_id != time_id))
		return 0;
	t->seg.time[time_id] += e->gross_ns;
	held.waits++;
	held.time_id = time_id;
	held.sum_ns += e->gross_ns;
	held.cpu_ns = e->cpu_ns;
	held.turn = e->turn;
	held.tick = ticks();
	return 1;
}

/* The time without CPU since the end of a wait: only another thread's turn can be in it. */
static uint64_t lost_since(const struct op_end *e)
{
	uint64_t since = ticks_ns(ticks() - e->tick), cpu;

	if (likely(since < RUNQUEUE_READING_NS))
		return 0;
	cpu = clock_cpu_between(e->cpu_ns, clock_cpu_ns());
	return since > cpu ? since - cpu : 0;
}

uint64_t runqueue_of_wait(struct crema_thread *t, const struct op_end *e)
{
	uint64_t delay = since_look(e->turn), own;

	delay -= least(delay, lost_since(e));
	own = least(delay, e->gross_ns);
	take_back(t, delay - own);
	return own;
}

void runqueue_settle(struct crema_thread *t, uint64_t turn)
{
	if (held.waits)
		settle(t, turn);
}

void runqueue_forget(void)
{
	look.valid = 0;
	young.on = 0;
	young.delay_ns = 0;
	held.waits = 0;
	held.sum_ns = 0;
}
