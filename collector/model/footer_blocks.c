/* SPDX-License-Identifier: BSD-3-Clause */
/* footer_blocks.c - see footer_blocks.h. */
#include "collector/model/footer_blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/framefile.h"

#define MS_NS UINT64_C(1000000)

/* Values of a block's item, after its kind. */
enum { BLOCK_END = 1, BLOCK_FRAMES, BLOCK_ALWAYS, BLOCK_SPANS, BLOCK_TIMES, BLOCK_VALUES };
/* Values of one worker's times: twice its number, plus 1 with totals; ms from the boot (0: one has
 * no time); length in ms. */
enum { TIMES_WORKER, TIMES_FROM, TIMES_LENGTH, TIMES_VALUES };

struct block_made *blocks_current(struct block_maker *b)
{
	return b->blocks.n ? &b->blocks.v[b->blocks.n - 1] : ARRAY_NEW(&b->blocks);
}

static bool same_name(const void *item, const void *key)
{
	return item == key;
}

int blocks_add_span(struct block_maker *b, const char *span)
{
	uint64_t hash = hash_pair((uintptr_t)span, 0);
	struct block_made *block = blocks_current(b);
	const char **at;

	if (block && (b->recent == span || table_find(&b->in_block, hash, same_name, span)))
		return 0;
	at = block ? ARRAY_NEW(&b->spans) : NULL;
	if (!at || table_add(&b->in_block, hash, (void *)(uintptr_t)span))
		return -ENOMEM;
	*at = b->recent = span;
	block->spans = b->spans.n;
	return 0;
}

static size_t *latest_of(struct block_maker *b, size_t worker)
{
	while (b->latest.n <= worker) {
		if (!ARRAY_NEW(&b->latest))
			return NULL;
	}
	return &b->latest.v[worker];
}

/* The worker's times in the current block. */
static struct block_times *times_of(struct block_maker *b, size_t worker)
{
	size_t *latest = latest_of(b, worker), first;
	struct block_made *block = blocks_current(b);
	struct block_times *times;

	if (!latest || !block)
		return NULL;
	first = b->blocks.n > 1 ? b->blocks.v[b->blocks.n - 2].times : 0;
	if (*latest > first)
		return &b->times.v[*latest - 1];
	times = ARRAY_NEW(&b->times);
	if (!times)
		return NULL;
	times->worker = worker;
	times->from_boot_ns = UINT64_MAX;
	*latest = block->times = b->times.n;
	return times;
}

int blocks_add_time(struct block_maker *b, size_t worker, uint64_t boot_ns, bool totals)
{
	struct block_times *times = times_of(b, worker);

	if (!times)
		return -ENOMEM;
	times->timeless = times->timeless || !boot_ns;
	times->totals = times->totals || totals;
	if (boot_ns < times->from_boot_ns)
		times->from_boot_ns = boot_ns;
	if (boot_ns > times->to_boot_ns)
		times->to_boot_ns = boot_ns;
	return 0;
}

void blocks_always(struct block_maker *b, size_t block)
{
	if (block)
		b->blocks.v[block - 1].always = true;
}

int blocks_add_frame(struct block_maker *b, uint64_t end)
{
	uint64_t from = b->blocks.n > 1 ? b->blocks.v[b->blocks.n - 2].end : 0;
	struct block_made *block = blocks_current(b), *next;

	if (!block)
		return -ENOMEM;
	block->end = end;
	block->frames++;
	if (end - from < FOOTER_BLOCK_BYTES)
		return 0;
	next = ARRAY_NEW(&b->blocks);
	if (!next)
		return -ENOMEM;
	next->spans = b->spans.n;
	next->times = b->times.n;
	table_release(&b->in_block);
	b->recent = NULL;
	return 0;
}

/* The last one may be empty. */
static size_t filled(const struct block_maker *b)
{
	return b->blocks.n && !b->blocks.v[b->blocks.n - 1].frames ? b->blocks.n - 1 : b->blocks.n;
}

size_t blocks_count(const struct block_maker *b)
{
	return filled(b) > 1 ? filled(b) : 0;
}

static void write_times(msgpack_packer *pk, const struct block_times *t)
{
	uint64_t from_ms = t->timeless ? 0 : t->from_boot_ns / MS_NS;

	pack_u64(pk, 2 * t->worker + t->totals);
	pack_u64(pk, from_ms);
	pack_u64(pk, t->to_boot_ns / MS_NS + 1 - from_ms);
}

void blocks_write(const struct block_maker *b, struct items *items, unsigned int kind)
{
	size_t i, n = blocks_count(b), spans = 0, times = 0;
	const struct block_made *block;
	msgpack_packer *pk;

	for (i = 0; i < n; i++) {
		block = &b->blocks.v[i];
		pk = items_add(items, kind, BLOCK_VALUES - 1);
		pack_u64(pk, block->end);
		pack_u64(pk, block->frames);
		pack_bool(pk, block->always);
		pack_array(pk, block->spans - spans);
		for (; spans < block->spans; spans++)
			pack_text(pk, b->spans.v[spans]);
		pack_array(pk, TIMES_VALUES * (block->times - times));
		for (; times < block->times; times++)
			write_times(pk, &b->times.v[times]);
	}
}

void blocks_release(struct block_maker *b)
{
	free(b->blocks.v);
	free(b->spans.v);
	free(b->times.v);
	free(b->latest.v);
	table_release(&b->in_block);
}

/* Reading */

static int want_spans(struct block *block, const struct selection *s, const msgpack_object *list)
{
	struct text span;
	uint32_t i;

	if (list->type != MSGPACK_OBJECT_ARRAY)
		return -EBADMSG;
	for (i = 0; i < list->via.array.size; i++) {
		if (!object_text(&list->via.array.ptr[i], &span))
			return -EBADMSG;
		block->tasks = block->tasks || selection_wants(s, span);
	}
	return 0;
}

/* The blocks of the worker's totals before and after a wanted one are wanted, too. */
static int want_times(struct blocks *b, size_t number, bool totals, bool wanted)
{
	struct blocks_of_worker *w;

	while (b->workers.n <= number) {
		if (!ARRAY_NEW(&b->workers))
			return -ENOMEM;
	}
	w = &b->workers.v[number];
	if (wanted && w->totals)
		b->v.v[w->totals - 1].wanted = true;
	if (wanted || (totals && w->next_totals))
		b->v.v[b->v.n - 1].wanted = true;
	if (totals)
		w->totals = b->v.n;
	w->next_totals = wanted || (w->next_totals && !totals);
	return 0;
}

static int take_times(struct blocks *b, const struct model *m, struct worker *const *workers,
		      size_t n, const msgpack_object *list)
{
	uint64_t number, from_ms, ms;
	const msgpack_object *at;
	bool wanted;
	uint32_t i;
	int rc = 0;

	if (list->type != MSGPACK_OBJECT_ARRAY || list->via.array.size % TIMES_VALUES)
		return -EBADMSG;
	for (i = 0; i < list->via.array.size && !rc; i += TIMES_VALUES) {
		at = &list->via.array.ptr[i];
		if (!object_u64(&at[TIMES_WORKER], &number) || number / 2 >= n ||
		    !object_u64(&at[TIMES_FROM], &from_ms) || from_ms > UINT64_MAX / 2 / MS_NS ||
		    !object_u64(&at[TIMES_LENGTH], &ms) || ms > UINT64_MAX / 2 / MS_NS)
			return -EBADMSG;
		wanted = !from_ms || selection_takes_times(m, workers[number / 2], from_ms * MS_NS,
							   (from_ms + ms) * MS_NS);
		rc = want_times(b, number / 2, number % 2, wanted);
	}
	return rc;
}

int blocks_take(struct blocks *b, const struct model *m, struct worker *const *workers, size_t n,
		const msgpack_object_array *item)
{
	uint64_t from = b->v.n ? b->v.v[b->v.n - 1].to : 0;
	struct block *block = ARRAY_NEW(&b->v);
	int rc;

	if (!block)
		return -ENOMEM;
	block->from = from;
	if (item->size != BLOCK_VALUES || !items_u64(item, BLOCK_END, &block->to) ||
	    !items_u64(item, BLOCK_FRAMES, &block->frames) || block->to <= from ||
	    item->ptr[BLOCK_ALWAYS].type != MSGPACK_OBJECT_BOOLEAN)
		return -EBADMSG;
	block->wanted = item->ptr[BLOCK_ALWAYS].via.boolean;
	rc = want_spans(block, m->selection, &item->ptr[BLOCK_SPANS]);
	block->wanted = block->wanted || block->tasks;
	return rc ? rc : take_times(b, m, workers, n, &item->ptr[BLOCK_TIMES]);
}

int blocks_feed(const struct blocks *b, struct model *m, const char *segment, uint64_t bytes,
		uint64_t frames)
{
	const struct block *block;
	uint64_t sum = 0;
	int rc = 0;

	for (block = b->v.v; block < b->v.v + b->v.n; block++)
		sum += block->frames;
	if (!b->v.n || sum != frames || b->v.v[b->v.n - 1].to != bytes)
		return -EBADMSG;
	for (block = b->v.v; block < b->v.v + b->v.n && !rc; block++) {
		m->selection->no_tasks = !block->tasks;
		if (block->wanted)
			rc = framefile_read_part(segment, block->from, block->to, block->frames,
						 model_feed, m);
	}
	m->selection->no_tasks = true;
	return rc;
}

void blocks_free(struct blocks *b)
{
	free(b->v.v);
	free(b->workers.v);
}
