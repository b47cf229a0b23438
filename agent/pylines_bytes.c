/* SPDX-License-Identifier: BSD-3-Clause */
/* pylines_bytes.c - what the shim has sampled by the byte, and long waits, become rows
 * (shim/count/byte_sample.h). */
#include "agent/pylines.h"

#define IDLE 100u /* a row that was not used in this many samples retires */

static uint64_t take_out(uint64_t *sum)
{
	return __atomic_load_n(sum, __ATOMIC_RELAXED)
		       ? __atomic_exchange_n(sum, 0, __ATOMIC_RELAXED)
		       : 0;
}

static struct pyline_row *row_of(struct pylines *l, const struct crema_byte_stack *s)
{
	struct pyline_row like = {.span = s->span,
				  .prefix = s->prefix,
				  .dataset = s->dataset,
				  .pool = s->pool != 0,
				  .why = s->full ? PYLINES_FULL : PYLINES_WHOLE};
	uint32_t depth = s->depth < CREMA_BYTE_DEPTH ? s->depth : CREMA_BYTE_DEPTH;
	struct pyline_row *r = pylines_recorded(l, &like, s->frame, depth);

	if (r)
		r->outer_cut = r->outer_cut || s->cut;
	return r;
}

/* Not an estimate: number and length of a wait may arrive one after the other. */
static bool take_waits(struct pylines *l, struct crema_byte_stack *s)
{
	uint64_t waits = take_out(&s->waits), ns = take_out(&s->waited_ns);
	unsigned int class = s->wait - 1u;
	struct pyline_row *r;

	if (!waits && !ns)
		return false;
	r = class < CREMA_TIMES ? row_of(l, s) : NULL;
	if (!r)
		return true;
	r->waits[class] += (uint32_t)waits;
	r->waited_ns[class] += ns;
	r->changed = true;
	l->unsent = true;
	return true;
}

/* True if there was anything. */
static bool take(struct pylines *l, struct crema_byte_stack *s)
{
	struct pyline_row *r = NULL;
	uint64_t samples;
	bool any = false;

	if (s->wait)
		return take_waits(l, s);
	for (unsigned int i = 0; i < CREMA_LINES_BYTES; i++) {
		samples = take_out(&s->samples[i]);
		if (!samples)
			continue;
		r = any ? r : row_of(l, s);
		any = true;
		if (!r)
			continue;
		r->byte_samples[i] += (uint32_t)samples;
		r->bytes[i] += take_out(&s->bytes[i]);
		r->byte_variance[i] += (double)take_out(&s->variance[i]) * 1024 * 1024;
		r->changed = true;
		l->unsent = true;
	}
	return any;
}

/* A row that was not used lately retires, and is free once no thread adds to it. */
static void retire(struct pylines *l, uint32_t i, bool used)
{
	struct crema_shm *m = l->view->shm;
	struct crema_byte_stack *s = &m->byte_stack[i];

	l->byte_idle[i] = used ? 0 : l->byte_idle[i] + 1;
	if (l->byte_idle[i] < IDLE)
		return;
	if (__atomic_exchange_n(&s->state, 3, __ATOMIC_SEQ_CST) != 3 ||
	    __atomic_load_n(&s->users, __ATOMIC_SEQ_CST))
		return;
	take(l, s);
	l->byte_idle[i] = 0;
	__atomic_store_n(&m->byte_stack_hash[i], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&s->state, 0, __ATOMIC_RELEASE);
}

void pylines_bytes(struct pylines *l)
{
	struct crema_shm *m = l->view->shm;
	uint32_t state;

	if (!l->table)
		return;
	__atomic_store_n(&m->byte_samples, 1, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < CREMA_SHM_BYTE_STACKS; i++) {
		if (!__atomic_load_n(&m->byte_stack_hash[i], __ATOMIC_RELAXED))
			continue;
		state = __atomic_load_n(&m->byte_stack[i].state, __ATOMIC_ACQUIRE);
		if (state >= 2)
			retire(l, i, take(l, &m->byte_stack[i]));
	}
}

struct pyline_row *pylines_named(struct pylines *l, uint64_t hash)
{
	struct crema_shm *m = l->view->shm;
	struct pyline_row *r = NULL;

	for (uint32_t i = 0; l->table && hash && !r && i < CREMA_SHM_BYTE_STACKS; i++)
		if (__atomic_load_n(&m->byte_stack_hash[i], __ATOMIC_RELAXED) == hash &&
		    __atomic_load_n(&m->byte_stack[i].state, __ATOMIC_ACQUIRE) >= 2)
			r = row_of(l, &m->byte_stack[i]);
	return r && r->why == PYLINES_WHOLE ? r : NULL;
}
