/* SPDX-License-Identifier: BSD-3-Clause */
/* extents.c - joins extents into sets of bytes. */
#include "agent/extents.h"

#include <stdlib.h>
#include <string.h>

#include "common/rows.h"

void extents_init(struct extents *e)
{
	e->file = calloc(CREMA_SHM_FILES, sizeof(*e->file));
}

void extents_release(struct extents *e)
{
	for (uint32_t i = 0; e->file && i < CREMA_SHM_FILES; i++) {
		ranges_release(&e->file[i].read);
		ranges_release(&e->file[i].baskets);
	}
	free(e->file);
	e->file = NULL;
}

/* How many ranges one more file may have: all together stay below their limit. */
static size_t room(const struct extents *e, const struct ranges *r)
{
	size_t all = 0, left;

	if (r->n < r->cap)
		return EXTENTS_RANGES_KEPT;
	for (uint32_t i = 0; i < CREMA_SHM_FILES; i++)
		all += e->file[i].read.cap + e->file[i].baskets.cap;
	left = all < EXTENTS_RANGES_ALL ? EXTENTS_RANGES_ALL - all : 0;
	return r->cap <= left ? EXTENTS_RANGES_KEPT : r->n;
}

static void take(struct extents *e, uint32_t row, uint64_t offset, uint32_t bytes)
{
	uint32_t at = (row & ~CREMA_EXTENT_BASKET) - 1;
	struct extents_file *f = at < CREMA_SHM_FILES ? &e->file[at] : NULL;
	bool basket = row & CREMA_EXTENT_BASKET;
	struct ranges *set;

	if (!f || offset > UINT64_MAX / 4)
		return;
	set = basket ? &f->baskets : &f->read;
	if (ranges_add(set, offset, offset + bytes, room(e, set)))
		return;
	*(basket ? &f->basket_bytes : &f->read_bytes) += bytes;
	f->list_due = true;
}

static void take_thread(struct extents *e, const struct crema_thread *t)
{
	uint32_t row = t->file_row & ~CREMA_EXTENT_BASKET;

	for (uint32_t i = 0; i < t->extents_ended && i < CREMA_EXTENTS_ENDED; i++)
		take(e, row, t->extent_ended_offset[i], t->extent_ended_bytes[i]);
	if (t->extent_bytes && t->extent_bytes < UINT32_MAX)
		take(e, row, t->extent_offset, (uint32_t)t->extent_bytes);
}

/* Extents that threads have in their blocks when the worker dies. */
static void take_pending(struct extents *e, const struct view *v)
{
	for (uint32_t k = 0; k < CREMA_SHM_THREADS; k++) {
		const struct crema_thread *t = &v->shm->thread[k];

		if (t->state == 1 && t->file_row)
			take_thread(e, t);
	}
}

void extents_take(struct extents *e, const struct view *v, bool ended)
{
	uint64_t tail = v->shm->extents_tail, head;

	head = __atomic_load_n(&v->shm->extents_head, __ATOMIC_ACQUIRE);
	if (head - tail > CREMA_SHM_EXTENTS)
		tail = head; /* unknown format */
	for (; tail != head; tail++) {
		struct crema_extent *at = &v->shm->extent[tail % CREMA_SHM_EXTENTS];
		uint32_t row = __atomic_load_n(&at->row, __ATOMIC_ACQUIRE);

		if (!row && !ended)
			break; /* its thread is writing it now */
		if (row && e->file)
			take(e, row, at->offset, at->bytes);
		__atomic_store_n(&at->row, 0, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&v->shm->extents_tail, tail, __ATOMIC_RELEASE);
	if (ended && e->file)
		take_pending(e, v);
}

void extents_pack(struct extents *e, uint32_t i, bool unchanged, bool with_lists,
		  msgpack_packer *pk)
{
	static const struct extents_file none;
	const struct extents_file *f = e->file ? &e->file[i] : &none;
	const uint64_t number[CREMA_FILE_VALUES] = {
		[CREMA_FILE_E_extent_bytes] = f->read_bytes,
		[CREMA_FILE_E_unique_bytes] = f->read.bytes,
		[CREMA_FILE_E_basket_extent_bytes] = f->basket_bytes,
		[CREMA_FILE_E_unique_basket_bytes] = f->baskets.bytes,
		[CREMA_FILE_E_read_basket_bytes] = ranges_common(&f->read, &f->baskets),
	};
	bool lists = with_lists && e->file && unchanged && f->read.n <= EXTENTS_RANGES_SENT &&
		     f->baskets.n <= EXTENTS_RANGES_SENT;

	for (unsigned int k = CREMA_FILE_NUMBERS; k < CREMA_FILE_VALUES; k++)
		pack_kv_maybe(pk, row_file[k].name, e->file && unchanged, number[k]);
	if (lists) {
		pack_text(pk, "ranges");
		ranges_pack(pk, &f->read);
		pack_text(pk, "basket_ranges");
		ranges_pack(pk, &f->baskets);
	} else {
		pack_kv_nil(pk, "ranges");
		pack_kv_nil(pk, "basket_ranges");
	}
	if (with_lists && e->file)
		e->file[i].list_due = false;
}
