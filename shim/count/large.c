/* SPDX-License-Identifier: BSD-3-Clause */
/* large.c - the table of live large blocks, and when it may be changed. */
#include "shim/count/large.h"

#include <stdlib.h>
#include <string.h>

#include "shim/count/byte_sample.h"
#include "shim/count/large_row.h"
#include "shim/count/task.h"

#define LEAST_BYTES (UINT64_C(64) << 10)
#define USUAL_BYTES (UINT64_C(1) << 20)
#define WINDOW 16u /* places that a block can have */
#define TRIES 500u /* to enter: some 10 us */
#define MASK (LARGE_BLOCKS - 1)

/* Instead of an address */
#define FREED 1u /* settle() removes it */
#define TAKEN 2u /* between large_take() and large_moved() */

size_t large_least = SIZE_MAX;
uint32_t large_live;
uint8_t large_filter[LARGE_BLOCKS];

static uintptr_t address[LARGE_BLOCKS];
static struct block {
	uint64_t bytes, name; /* task_name() */
	uint32_t owner;
	uint16_t row;  /* of crema_shm.large */
	uint16_t kept; /* 1: its task has ended */
	uint32_t home; /* of the address that it had first */
} block[LARGE_BLOCKS];
static uint32_t of_task[CREMA_SHM_TASKS]; /* blocks that are not kept */
static uint32_t unsettled;

static int enter(void)
{
	uint64_t seq;

	for (uint32_t i = 0; i < TRIES; i++) {
		seq = LOAD(&crema_shm->large_seq);
		if (!(seq & 1) &&
		    __atomic_compare_exchange_n(&crema_shm->large_seq, &seq, seq + 1, 0,
						__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			return 1;
#ifdef __x86_64__
		__builtin_ia32_pause();
#endif
	}
	return 0;
}

static void leave(void)
{
	__atomic_fetch_add(&crema_shm->large_seq, 1, __ATOMIC_RELEASE);
}

/* Entered */

static int has_ended(const struct block *b)
{
	uint32_t state = CREMA_SLOT_STATE(LOAD(&crema_shm->slot_word[b->owner - 1]));

	return state == CREMA_SLOT_FREE || state == CREMA_SLOT_DONE ||
	       task_name(b->owner) != b->name;
}

static void keep(struct block *b)
{
	b->kept = 1;
	of_task[b->owner - 1]--;
	large_row_keep(b->row, (int64_t)b->bytes);
}

static void count_in(uint32_t home, int n)
{
	uint8_t *f = &large_filter[home];

	if (*f != UINT8_MAX) /* that many are no longer counted */
		STORE(f, (uint8_t)(*f + n));
}

/* Its task may have ended since, and its slot may be another's. */
static void count_freed(const struct block *b)
{
	uint32_t owner = task_ref_name(b->name);

	if (task_slot(owner) && !task_is_done(owner))
		task_add(owner, CREMA_C_large_freed_bytes, b->bytes);
	task_unref(owner);
}

static void drop(uint32_t at)
{
	struct block *b = &block[at];

	if (b->kept) {
		large_row_keep(b->row, -(int64_t)b->bytes);
	} else {
		of_task[b->owner - 1]--;
		count_freed(b);
	}
	large_row_free(b->row, b->bytes);
	count_in(b->home, -1);
	STORE(&large_live, large_live - 1);
	__atomic_store_n(&address[at], 0, __ATOMIC_RELEASE);
}

static void settle(void)
{
	uintptr_t a;

	STORE(&unsettled, 0);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < LARGE_BLOCKS; i++) {
		a = LOAD(&address[i]);
		if (a == FREED)
			drop(i);
		else if (a && !block[i].kept && has_ended(&block[i]))
			keep(&block[i]);
	}
}

static int enter_settled(void)
{
	if (!enter())
		return 0;
	if (unlikely(LOAD(&unsettled)))
		settle();
	return 1;
}

static uint32_t free_place(uint32_t home)
{
	for (uint32_t i = 0; i < WINDOW; i++)
		if (!LOAD(&address[(home + i) & MASK]))
			return (home + i) & MASK;
	return LARGE_NONE;
}

/* 0: no room. */
static int insert(const void *p, const struct block *like)
{
	uint32_t home = large_home(p), at = free_place(home);
	struct block *b = &block[at & MASK];

	if (at == LARGE_NONE)
		return 0;
	*b = *like;
	b->home = home;
	of_task[b->owner - 1]++;
	large_row_allocate(b->row, b->bytes);
	count_in(home, 1);
	STORE(&large_live, large_live + 1);
	__atomic_store_n(&address[at], (uintptr_t)p, __ATOMIC_RELEASE);
	if (has_ended(b))
		keep(b);
	return 1;
}

/* Any time: only the thread that frees a block changes where its address is. */
static uint32_t find(const void *p)
{
	uint32_t home = large_home(p);

	for (uint32_t i = 0; i < WINDOW && p; i++) /* NULL looks like a free place */
		if (__atomic_load_n(&address[(home + i) & MASK], __ATOMIC_ACQUIRE) == (uintptr_t)p)
			return (home + i) & MASK;
	return LARGE_NONE;
}

/* When settle() comes, its task may have ended. */
static void later(uint32_t at)
{
	task_counts_unknown(block[at].name, CREMA_COUNT_BIT(large_freed_bytes));
	__atomic_store_n(&address[at], FREED, __ATOMIC_RELEASE);
	__atomic_store_n(&unsettled, 1, __ATOMIC_SEQ_CST);
}

static void release(uint32_t at)
{
	if (enter_settled()) {
		drop(at);
		leave();
	} else {
		later(at);
	}
}

static void refuse(const struct crema_thread *t, uint64_t bytes)
{
	task_counts_unknown(task_name(t->owner), CREMA_COUNT_BIT(large_freed_bytes));
	ADD(&crema_shm->totals.large_refused, 1);
	ADD(&crema_shm->totals.large_refused_bytes, bytes);
}

/* Replaces `old` (LARGE_NONE: nothing) by this block, in one change: together they were never live.
 */
static void replace(uint32_t old, const void *p, size_t bytes)
{
	const struct crema_thread *t = thread_block;
	const struct crema_task *task = t ? task_slot(t->owner) : NULL;
	struct crema_py_frame frame[CREMA_BYTE_DEPTH];
	struct large_stack s = {.task = task, .frame = frame};
	struct block b = {.bytes = bytes};
	int done = 0;

	task_add(t ? t->owner : OWNER_NONE, CREMA_C_large_allocated_bytes, bytes);
	if (task) {
		s.pool = t->is_pool;
		s.depth = byte_sample_stack(t, frame, &s.cut);
		s.hash = byte_sample_hash(task, s.pool, frame, s.depth);
		b.owner = t->owner;
		b.name = task_name(t->owner);
	}
	if (enter_settled()) {
		if (old != LARGE_NONE)
			drop(old);
		done = task && large_row_of(&s, &b.row) && insert(p, &b);
		leave();
	} else if (old != LARGE_NONE) {
		later(old);
	}
	if (!done && t && t->owner != OWNER_NONE)
		refuse(t, bytes);
}

static int is_on(void)
{
	return shim_armed() && LOAD(&large_least) != SIZE_MAX;
}

static const void *probed;
static uint32_t probing;

void large_allocated(const void *p, size_t bytes)
{
	uint32_t stale = LARGE_NONE;

	if (unlikely(LOAD(&probing)))
		STORE(&probed, p);
	if (!p || !is_on())
		return;
	if (large_may_hold(p)) /* freed unseen, or its address would not be given away again */
		stale = find(p);
	if (stale != LARGE_NONE || (thread_block && thread_block->owner != OWNER_NONE))
		replace(stale, p, bytes);
	else
		task_add(OWNER_NONE, CREMA_C_large_allocated_bytes, bytes);
}

void large_freed(const void *p)
{
	uint32_t at = is_on() ? find(p) : LARGE_NONE;

	if (at != LARGE_NONE)
		release(at);
}

uint32_t large_take(const void *p)
{
	uint32_t at = is_on() && large_may_hold(p) ? find(p) : LARGE_NONE;

	if (at != LARGE_NONE)
		STORE(&address[at], TAKEN);
	return at;
}

void large_stays(uint32_t at, const void *p)
{
	if (at != LARGE_NONE)
		__atomic_store_n(&address[at], (uintptr_t)p, __ATOMIC_RELEASE);
}

void large_moved(uint32_t at, const void *to, size_t bytes)
{
	if (to && bytes >= LOAD(&large_least)) {
		if (at == LARGE_NONE)
			large_allocated(to, bytes);
		else
			replace(at, to, bytes);
	} else if (at != LARGE_NONE) {
		release(at);
	}
}

void large_task_ends(uint32_t owner)
{
	if (!task_slot(owner) || !is_on() || !LOAD(&of_task[owner - 1]))
		return;
	__atomic_store_n(&unsettled, 1, __ATOMIC_SEQ_CST);
	if (enter_settled())
		leave();
}

void large_end(void)
{
	STORE(&large_least, SIZE_MAX);
	STORE(&large_live, 0);
}

/* Start */

static uint64_t wanted_bytes(void)
{
	static const char units[] = "kMG";
	const char *text = getenv("CREMA_LARGE_BYTES"), *unit;
	uint64_t bytes = 0;

	if (!text || !*text)
		return USUAL_BYTES;
	for (; *text >= '0' && *text <= '9' && bytes < UINT64_C(1) << 40; text++)
		bytes = bytes * 10 + (uint64_t)(*text - '0');
	unit = *text ? strchr(units, *text) : NULL;
	if (*text && (!unit || text[1])) {
		shim_note("CREMA_LARGE_BYTES is not a number of bytes; 1M is used");
		return USUAL_BYTES;
	}
	bytes <<= unit ? 10 * (unit - units + 1) : 0;
	return bytes && bytes < LEAST_BYTES ? LEAST_BYTES : bytes;
}

/* 1 if the process's calls come here: another allocator may be in front of this library. */
static int is_called(void)
{
	static void *(*volatile allocate)(size_t) = malloc;
	static void (*volatile give_back)(void *) = free;
	void *p;

	STORE(&probing, 1);
	STORE(&large_least, LEAST_BYTES);
	p = allocate(LEAST_BYTES);
	STORE(&large_least, SIZE_MAX);
	STORE(&probing, 0);
	give_back(p);
	return p && LOAD(&probed) == p;
}

static void cannot_count(void)
{
	const uint64_t counts =
		CREMA_COUNT_BIT(large_allocated_bytes) | CREMA_COUNT_BIT(large_freed_bytes);

	tasks_cannot_count(counts, 0);
	__atomic_fetch_or(&crema_shm->totals.count_unknown, counts, __ATOMIC_RELAXED);
}

void large_begin(void)
{
	const char *hz = getenv("CREMA_SAMPLE_HZ"); /* 0: nothing would read the rows */
	uint64_t bytes = hz && !strcmp(hz, "0") ? 0 : wanted_bytes();

	large_end();
	memset(address, 0, sizeof(address));
	memset(large_filter, 0, sizeof(large_filter));
	memset(of_task, 0, sizeof(of_task));
	STORE(&unsettled, 0);
	large_rows_begin();
	if (bytes && !is_called()) {
		shim_note("another allocator is preloaded before libcrema.so: which lines hold "
			  "memory is unknown");
		bytes = 0;
	}
	if (!bytes)
		cannot_count();
	crema_shm->large_bytes = bytes;
	STORE(&large_least, bytes ? bytes : SIZE_MAX);
}
