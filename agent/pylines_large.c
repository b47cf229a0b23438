/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pylines_large.c - the shim's large allocations by stack (contract/shm_large.h) become rows.
 *
 * A row of the table gets the difference to what agents have told of the shim's row, which is in
 * shared memory: a new table, or the next agent, goes on from there. A share of the maximum is told
 * once for each epoch; it never changes within one.
 */
#include <string.h>

#include "agent/pylines.h"

#define READS 5 /* until a copy is of one moment; afterwards the next look corrects it */

static struct {
	struct crema_large_span span[CREMA_LARGE_SPANS];
	struct crema_large_row row[CREMA_LARGE_ROWS];
	bool whole; /* of one moment */
} now;		    /* one thread */

/* False: nothing has changed. */
static bool copy(struct pylines *l)
{
	const struct crema_shm *m = l->view->shm;
	uint64_t seq = __atomic_load_n(&m->large_seq, __ATOMIC_ACQUIRE);

	if (seq == l->large_seq)
		return false;
	for (int i = 0; i < READS; i++) {
		memcpy(now.span, m->large_span, sizeof(now.span));
		memcpy(now.row, m->large, sizeof(now.row));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(seq & 1) && __atomic_load_n(&m->large_seq, __ATOMIC_RELAXED) == seq) {
			l->large_seq = seq;
			return now.whole = true;
		}
		seq = __atomic_load_n(&m->large_seq, __ATOMIC_ACQUIRE);
	}
	l->large_seq = UINT64_MAX; /* look again, even if this was the last change */
	now.whole = false;
	return true;
}

/* How many frames its stack has; they are read once. */
static uint32_t frames_of(struct pylines *l, uint32_t i, const struct crema_large_row *r)
{
	const uint64_t bytes = sizeof(l->large_frame[i]);
	uint32_t depth = r->depth < CREMA_BYTE_DEPTH ? r->depth : CREMA_BYTE_DEPTH;
	const struct crema_shm *m = l->view->shm;
	size_t want = depth * sizeof(struct crema_py_frame);

	if (!depth || l->large_number[i] == r->number)
		return depth;
	if (l->process.read(l->process.arg, m->large_frames + i * bytes, l->large_frame[i], want) !=
		    want ||
	    __atomic_load_n(&m->large[i].number, __ATOMIC_ACQUIRE) != r->number)
		return 0;
	l->large_number[i] = r->number;
	return depth;
}

static void take(struct pylines *l, uint32_t i, const struct crema_large_row *r,
		 struct crema_large_told *told)
{
	const struct crema_large_span *span =
		&now.span[r->at < CREMA_LARGE_SPANS ? r->at : CREMA_LARGE_SPANS - 1];
	struct pyline_row like = {.span = r->span,
				  .prefix = r->prefix,
				  .dataset = r->dataset,
				  .pool = r->pool != 0,
				  .why = r->full ? PYLINES_FULL : PYLINES_NONE};
	uint64_t share = crema_large_share(r, span), before;
	uint32_t depth;
	struct pyline_row *to;

	before = told->share_epoch == span->epoch ? told->share_bytes : 0;
	if (told->changes == r->changes &&
	    (told->share_epoch == span->epoch || !(share | told->share_bytes)))
		return;
	depth = frames_of(l, i, r);
	if (r->depth && !depth)
		like.why = PYLINES_TORN;
	to = pylines_recorded(l, &like, l->large_frame[i], depth);
	if (!to)
		return; /* the table is full: the next one has room */
	to->large[CREMA_LINES_L_allocations] += (int64_t)(r->allocations - told->allocations);
	to->large[CREMA_LINES_L_allocated_bytes] +=
		(int64_t)(r->allocated_bytes - told->allocated_bytes);
	to->large[CREMA_LINES_L_live_bytes] += r->live_bytes - told->live_bytes;
	to->large[CREMA_LINES_L_kept_bytes] += r->kept_bytes - told->kept_bytes;
	if (to->large_epoch != span->epoch)
		to->large[CREMA_LINES_L_peak_bytes] = 0;
	to->large_epoch = span->epoch;
	to->large[CREMA_LINES_L_peak_bytes] += (int64_t)share - (int64_t)before;
	to->large_changes++;
	to->changed = true;
	l->unsent = true;
	told->allocations = r->allocations;
	told->allocated_bytes = r->allocated_bytes;
	told->live_bytes = r->live_bytes;
	told->kept_bytes = r->kept_bytes;
	told->share_bytes = share;
	told->share_epoch = span->epoch;
	/* From here on the shim may give an unused row to another stack. A number that was read
	 * while it changed is compared again. */
	__atomic_store_n(&told->changes, r->changes - !now.whole, __ATOMIC_RELEASE);
}

void pylines_large(struct pylines *l)
{
	struct crema_large_told *told;

	if (!l->table || !copy(l))
		return;
	for (uint32_t i = 0; i < CREMA_LARGE_ROWS; i++) {
		if (!now.row[i].number)
			continue;
		told = &l->view->shm->large_told[i];
		if (told->number != now.row[i].number) {
			memset(told, 0, sizeof(*told));
			__atomic_store_n(&told->number, now.row[i].number, __ATOMIC_RELEASE);
		}
		take(l, i, &now.row[i], told);
	}
}
