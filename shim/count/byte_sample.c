/* SPDX-License-Identifier: BSD-3-Clause */
/* byte_sample.c - points on the way of bytes and long waits, and the stacks that pass them. */
#include "shim/count/byte_sample.h"

#include <string.h>

#include "shim/libc/sys.h"
#include "shim/count/task.h"

#define LEAST_BYTES UINT64_C(8192) /* mean distance of points */
#define FURTHEST 19		   /* powers of two further, where bytes come fast */
#define APART_NS 100000u	   /* for each kind of bytes */
#define NEAR 8u			   /* places that a stack can have */
#define KEPT 256u		   /* a power of two: the low bits of a number */
#define NUMBER_BITS 16		   /* of a number; 0 is none */

uint32_t (*byte_sample_walk)(struct crema_py_frame *frame, uint32_t most, uint32_t *cut);

static struct kept {
	uint32_t number, busy;
	uint32_t depth, cut;
	uint64_t hash;
	struct crema_py_frame frame[CREMA_BYTE_DEPTH];
} kept[KEPT];

/* Uniform in [1/2, 3/2] of the mean, so that a program's own period meets no pattern. */
static uint64_t next_gap(uint64_t mean)
{
	static __thread uint64_t random;

	random = random ? random : ticks() | 1;
	random ^= random << 13;
	random ^= random >> 7;
	random ^= random << 17;
	return mean / 2 + random % mean + 1;
}

static uint64_t hash_of(const struct crema_py_frame *frame, uint32_t n)
{
	uint64_t hash = n;

	for (uint32_t i = 0; i < n; i++) {
		hash = (hash ^ frame[i].code ^ (uint64_t)frame[i].at << 48) *
		       UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash;
}

/* Appends the stack with this number, unless it has been replaced. */
static uint32_t append(uint32_t number, struct crema_py_frame *frame, uint32_t n, uint32_t *cut)
{
	const struct kept *k = &kept[number % KEPT];
	uint32_t depth, more, was_cut;

	if (!number || __atomic_load_n(&k->number, __ATOMIC_ACQUIRE) != number)
		return n;
	depth = LOAD(&k->depth);
	was_cut = LOAD(&k->cut);
	more = depth < CREMA_BYTE_DEPTH - n ? depth : CREMA_BYTE_DEPTH - n;
	memcpy(frame + n, k->frame, more * sizeof(*frame));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (LOAD(&k->number) != number)
		return n;
	*cut |= was_cut || more < depth;
	return n + more;
}

uint32_t byte_sample_stack(const struct crema_thread *t, struct crema_py_frame *frame,
			   uint32_t *cut)
{
	uint32_t n;

	*cut = 0;
	if (!byte_sample_walk)
		return 0;
	n = byte_sample_walk(frame, CREMA_BYTE_DEPTH, cut);
	return *cut ? n : append(t->submitter, frame, n, cut);
}

/* The place of the stack with this hash: its own, else a free one nearby, else the first. */
static struct kept *place_of(uint64_t hash)
{
	struct kept *k, *free = NULL;

	for (uint32_t i = 0; i < NEAR; i++) {
		k = &kept[((hash >> 32) + i) % KEPT];
		if (LOAD(&k->number) && k->hash == hash)
			return k;
		free = free || LOAD(&k->number) ? free : k;
	}
	return free ? free : &kept[(hash >> 32) % KEPT];
}

uint32_t byte_sample_keep(void)
{
	struct crema_py_frame frame[CREMA_BYTE_DEPTH];
	const struct crema_thread *t = thread_self();
	uint32_t cut, n, number;
	struct kept *k;
	uint64_t hash;

	if (!t || t->owner == OWNER_NONE || !LOAD(&crema_shm->byte_samples))
		return 0;
	n = byte_sample_stack(t, frame, &cut);
	hash = hash_of(frame, n);
	k = place_of(hash);
	if (!n || __atomic_exchange_n(&k->busy, 1, __ATOMIC_ACQUIRE))
		return 0; /* two interpreters have a GIL each */
	number = LOAD(&k->number);
	if (!number || k->hash != hash || k->depth != n) {
		number = ((number / KEPT + 1) * KEPT & ((1u << NUMBER_BITS) - 1)) |
			 (uint32_t)(k - kept);
		number = number < KEPT ? number + KEPT : number;
		STORE(&k->number, 0);
		__atomic_thread_fence(__ATOMIC_RELEASE);
		k->hash = hash;
		STORE(&k->depth, n);
		STORE(&k->cut, cut);
		memcpy(k->frame, frame, n * sizeof(*frame));
		__atomic_store_n(&k->number, number, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&k->busy, 0, __ATOMIC_RELEASE);
	return number;
}

uint32_t byte_sample_submitter(uint32_t number)
{
	struct crema_thread *t = thread_self();
	uint32_t before = t ? t->submitter : 0;

	if (t)
		t->submitter = number;
	return before;
}

/* Rows: one for each stack of a kind of task */

/* A sample of a task's bytes, or a long wait. */
struct sample {
	const struct crema_task *task;
	enum crema_lines_byte kind;
	uint64_t bytes, spread, waited_ns;
	uint8_t pool, wait, full; /* as the row's */
};

/* A stack on its way into a row. */
struct taken {
	struct crema_py_frame frame[CREMA_BYTE_DEPTH];
	uint32_t depth, cut;
};

static void put(struct crema_byte_stack *s, const struct sample *of)
{
	if (of->wait) {
		ADD(&s->waited_ns, of->waited_ns);
		ADD(&s->waits, 1);
		return;
	}
	ADD(&s->samples[of->kind], 1);
	ADD(&s->bytes[of->kind], of->bytes);
	ADD(&s->variance[of->kind], (of->spread >> 10) * (of->spread >> 10));
}

/* 0: the row is not ready, or another stack's by now. */
static int add_to(struct crema_byte_stack *s, uint64_t hash, const struct sample *of)
{
	const uint64_t *now = &crema_shm->byte_stack_hash[s - crema_shm->byte_stack];
	int ready;

	__atomic_fetch_add(&s->users, 1, __ATOMIC_SEQ_CST);
	ready = __atomic_load_n(&s->state, __ATOMIC_SEQ_CST) == 2 && LOAD(now) == hash;
	if (ready)
		put(s, of);
	__atomic_fetch_sub(&s->users, 1, __ATOMIC_RELEASE);
	return ready;
}

static int add_to_known(uint64_t hash, const struct sample *of)
{
	for (uint32_t i = 0; i < CREMA_SHM_BYTE_STACKS; i++)
		if (LOAD(&crema_shm->byte_stack_hash[i]) == hash &&
		    add_to(&crema_shm->byte_stack[i], hash, of))
			return 1;
	return 0;
}

static struct crema_byte_stack *claim(int full)
{
	uint32_t spare = CREMA_SHM_BYTE_STACKS - CREMA_SHM_BYTE_STACKS_OTHER;
	uint32_t end = full ? CREMA_SHM_BYTE_STACKS : spare;

	for (uint32_t i = full ? spare : 0; i < end; i++)
		if (row_claim(&crema_shm->byte_stack[i].state))
			return &crema_shm->byte_stack[i];
	return NULL;
}

uint64_t byte_sample_hash(const struct crema_task *task, uint32_t pool,
			  const struct crema_py_frame *frame, uint32_t depth)
{
	uint64_t hash = hash_of(frame, depth);

	hash ^= ((uint64_t)task->span << 32 | task->prefix) * UINT64_C(0xc2b2ae3d27d4eb4f);
	hash ^= ((uint64_t)task->dataset << 1 | pool) * UINT64_C(0x165667b19e3779f9);
	return hash | 1;
}

/* Returns the row's hash; 0: there is no room for another stack. */
static uint64_t record(const struct sample *of, const struct taken *stack)
{
	const struct crema_task *task = of->task;
	uint64_t hash = byte_sample_hash(task, of->pool, stack->frame, stack->depth);
	struct crema_byte_stack *s;

	hash ^= ((uint64_t)of->wait << 6 | of->full) * UINT64_C(0x9e3779b97f4a7c15) << 1;
	if (add_to_known(hash, of))
		return hash;
	s = claim(of->full);
	if (!s)
		return 0;
	s->span = task->span;
	s->prefix = task->prefix;
	s->dataset = task->dataset;
	s->pool = of->pool;
	s->wait = of->wait;
	s->full = of->full;
	s->depth = (uint16_t)stack->depth;
	s->cut = stack->cut != 0;
	memcpy(s->frame, stack->frame, stack->depth * sizeof(*stack->frame));
	STORE(&crema_shm->byte_stack_hash[s - crema_shm->byte_stack], hash);
	put(s, of);
	__atomic_store_n(&s->state, 2, __ATOMIC_SEQ_CST);
	return hash;
}

uint64_t byte_sample_wait(const struct crema_thread *t, int time_id, uint64_t waited_ns)
{
	struct sample of = {.task = task_slot(t->owner),
			    .pool = t->is_pool != 0,
			    .wait = (uint8_t)(time_id + 1),
			    .waited_ns = waited_ns};
	struct taken stack;
	uint64_t hash;

	if (!of.task)
		return 0;
	stack.depth = byte_sample_stack(t, stack.frame, &stack.cut);
	hash = record(&of, &stack);
	if (hash)
		return stack.depth ? hash : 0;
	stack.depth = stack.cut = 0;
	of.full = 1;
	record(&of, &stack);
	return 0;
}

/* Points */

/* Samples further apart than APART_NS cost a thread nothing that it could measure. */
static __thread struct {
	uint64_t attempt, late; /* late: bytes whose samples found no room, of that attempt */
	uint64_t last;		/* ticks */
	uint32_t further;	/* powers of two */
} points[CREMA_LINES_BYTES];

void byte_sample_forget(void)
{
	memset(points, 0, sizeof(points));
}

static uint64_t interval_of(enum crema_lines_byte kind)
{
	uint64_t now = ticks(), apart_ns = ticks_ns(now - points[kind].last);

	if (apart_ns < APART_NS && points[kind].further < FURTHEST)
		points[kind].further++;
	else if (apart_ns > 4 * APART_NS && points[kind].further)
		points[kind].further--;
	points[kind].last = now;
	return LEAST_BYTES << points[kind].further;
}

static void sample(const struct crema_thread *t, struct sample *of,
		   const struct byte_request *request)
{
	struct taken stack;
	uint32_t owner;
	uint64_t late;

	if (request && t->owner != OWNER_NONE && task_name(t->owner) == request->task)
		request = NULL;
	owner = request ? task_ref_name(request->task) : t->owner;
	of->task = task_slot(owner);
	of->pool = request || t->is_pool;
	if (of->task) {
		late = points[of->kind].attempt == of->task->attempt ? points[of->kind].late : 0;
		of->spread = late > of->spread ? late : of->spread;
		of->bytes += late;
		points[of->kind].attempt = of->task->attempt;
		stack.cut = 0;
		stack.depth = request ? append(request->stack, stack.frame, 0, &stack.cut)
				      : byte_sample_stack(t, stack.frame, &stack.cut);
		points[of->kind].late = record(of, &stack) ? 0 : of->bytes;
	}
	if (request)
		task_unref(owner);
}

void byte_sample_take(struct crema_thread *t, enum crema_lines_byte kind, uint64_t bytes,
		      const struct byte_request *request)
{
	uint64_t gap = t->byte_gap[kind], first, interval, sum;
	struct sample of;

	bytes -= t->byte_left[kind];
	if (!LOAD(&crema_shm->byte_samples)) {
		t->byte_left[kind] = LEAST_BYTES;
		t->byte_gap[kind] = 0;
		return;
	}
	interval = interval_of(kind);
	/* Of a call with many points, only the places of the first and the last one matter; the
	 * first gap is from when bytes may have come faster. */
	first = gap;
	sum = gap + bytes / interval * interval;
	bytes %= interval;
	for (gap = next_gap(interval); gap <= bytes; gap = next_gap(interval)) {
		sum += gap;
		bytes -= gap;
	}
	t->byte_left[kind] = gap - bytes;
	t->byte_gap[kind] = gap;
	of = (struct sample){
		.kind = kind, .bytes = sum, .spread = first > interval ? first : interval};
	if (sum)
		sample(t, &of, request);
}
