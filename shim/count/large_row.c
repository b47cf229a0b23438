/* SPDX-License-Identifier: BSD-3-Clause */
/* large_row.c - see large_row.h. */
#include "shim/count/large_row.h"

#include <string.h>

#include "shim/count/byte_sample.h"

#define OWN_ROWS (CREMA_LARGE_ROWS - CREMA_LARGE_ROWS_OTHER)

static struct crema_py_frame frames[CREMA_LARGE_ROWS][CREMA_BYTE_DEPTH];
static uint64_t row_hash[CREMA_LARGE_ROWS]; /* 0: free */
static uint64_t rows_made, epochs;

void large_rows_begin(void)
{
	memset(row_hash, 0, sizeof(row_hash));
	rows_made = epochs = 0;
	crema_shm->large_frames = (uintptr_t)frames;
}

/* The agent knows all of it, and no block refers to it. */
static int is_over(uint32_t row)
{
	const struct crema_large_row *r = &crema_shm->large[row];
	const struct crema_large_told *told = &crema_shm->large_told[row];

	return !r->live_bytes && __atomic_load_n(&told->number, __ATOMIC_ACQUIRE) == r->number &&
	       LOAD(&told->changes) == r->changes;
}

/* Spans */

static uint32_t find_span(uint32_t span)
{
	for (uint32_t i = 0; i < CREMA_LARGE_SPANS; i++)
		if (crema_shm->large_span[i].used && crema_shm->large_span[i].span == span)
			return i;
	return CREMA_LARGE_SPANS;
}

/* Gives up the rows of a span, if all of them are over. */
static int release_span(uint32_t at)
{
	for (uint32_t i = 0; i < CREMA_LARGE_ROWS; i++)
		if (row_hash[i] && crema_shm->large[i].at == at && !is_over(i))
			return 0;
	for (uint32_t i = 0; i < CREMA_LARGE_ROWS; i++)
		if (row_hash[i] && crema_shm->large[i].at == at) {
			crema_shm->large[i].number = 0;
			row_hash[i] = 0;
		}
	return 1;
}

static uint32_t unused_span(void)
{
	uint32_t oldest = CREMA_LARGE_SPANS;
	const struct crema_large_span *s = crema_shm->large_span;

	for (uint32_t i = 0; i < CREMA_LARGE_SPANS; i++) {
		if (!s[i].used)
			return i;
		if (!s[i].live_bytes &&
		    (oldest == CREMA_LARGE_SPANS || s[i].epoch < s[oldest].epoch))
			oldest = i;
	}
	return oldest < CREMA_LARGE_SPANS && release_span(oldest) ? oldest : CREMA_LARGE_SPANS;
}

static uint32_t span_of(uint32_t span)
{
	uint32_t at = find_span(span);

	if (at < CREMA_LARGE_SPANS)
		return at;
	at = unused_span();
	if (at < CREMA_LARGE_SPANS)
		crema_shm->large_span[at] = (struct crema_large_span){.span = span, .used = 1};
	return at;
}

/* Rows */

static uint32_t find_row(uint64_t hash, uint32_t from, uint32_t to)
{
	while (from < to && row_hash[from] != hash)
		from++;
	return from;
}

/* A free one, else the one that has not changed for the longest time: the lowest number. */
static uint32_t unused_row(uint32_t from, uint32_t to)
{
	uint32_t oldest = to;

	for (uint32_t i = from; i < to; i++) {
		if (!row_hash[i])
			return i;
		if (is_over(i) &&
		    (oldest == to || crema_shm->large[i].number < crema_shm->large[oldest].number))
			oldest = i;
	}
	return oldest;
}

static int make_row(uint32_t row, uint64_t hash, const struct large_stack *s, uint32_t depth)
{
	struct crema_large_row *r = &crema_shm->large[row];
	uint32_t at;

	r->number = 0;
	row_hash[row] = 0;
	at = span_of(s->task->span);
	if (at == CREMA_LARGE_SPANS)
		return 0;
	memcpy(frames[row], s->frame, depth * sizeof(*s->frame));
	*r = (struct crema_large_row){.number = ++rows_made,
				      .span = s->task->span,
				      .prefix = s->task->prefix,
				      .dataset = s->task->dataset,
				      .pool = s->pool,
				      .at = at,
				      .depth = depth,
				      .cut = depth && s->cut,
				      .full = depth != s->depth};
	row_hash[row] = hash;
	return 1;
}

static int row_among(uint32_t from, uint32_t to, uint64_t hash, const struct large_stack *s,
		     uint32_t depth, uint16_t *row)
{
	uint32_t at = find_row(hash, from, to);

	if (at == to) {
		at = unused_row(from, to);
		if (at == to || !make_row(at, hash, s, depth))
			return 0;
	}
	*row = (uint16_t)at;
	return 1;
}

int large_row_of(const struct large_stack *s, uint16_t *row)
{
	return row_among(0, OWN_ROWS, s->hash, s, s->depth, row) ||
	       row_among(OWN_ROWS, CREMA_LARGE_ROWS, byte_sample_hash(s->task, s->pool, NULL, 0), s,
			 0, row);
}

/* Sums */

static struct crema_large_row *change(uint16_t row, int64_t bytes)
{
	struct crema_large_row *r = &crema_shm->large[row];
	struct crema_large_span *s = &crema_shm->large_span[r->at];

	r->share_bytes = crema_large_share(r, s);
	r->share_epoch = s->epoch;
	r->live_bytes += bytes;
	s->live_bytes += bytes;
	if (s->live_bytes > 0 && (uint64_t)s->live_bytes > s->peak_bytes) {
		s->peak_bytes = (uint64_t)s->live_bytes;
		s->epoch = ++epochs;
	}
	r->changes++;
	return r;
}

void large_row_allocate(uint16_t row, uint64_t bytes)
{
	struct crema_large_row *r = change(row, (int64_t)bytes);

	r->allocations++;
	r->allocated_bytes += bytes;
}

void large_row_free(uint16_t row, uint64_t bytes)
{
	change(row, -(int64_t)bytes);
}

void large_row_keep(uint16_t row, int64_t bytes)
{
	crema_shm->large[row].kept_bytes += bytes;
	crema_shm->large[row].changes++;
}
