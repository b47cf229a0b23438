/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live_checkpoint.c - the live numbers in a checkpoint.
 *
 * Not included are the field order of records (in every segment a hello precedes each worker's
 * records), the input of rates (a rate is unknown for some seconds) and connections.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "collector/journal/checkpoint.h"
#include "collector/live/live_parts.h"

#define KNOWN_WORDS(n) (((n) + 63) / 64)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Members that are plain numbers, in the order of the items. Add new ones at the end: a checkpoint
 * of another version has fewer or more. */
static const size_t live_numbers[] = {
	offsetof(struct live, counted),		offsetof(struct live, gone_ended),
	offsetof(struct live, gone_killed),	offsetof(struct live, gone_order),
	offsetof(struct live, with_notes_gone),
};
static const size_t worker_numbers[] = {
	offsetof(struct live_worker, pid),
	offsetof(struct live_worker, hello_stream),
	offsetof(struct live_worker, hello_boot_ns),
	offsetof(struct live_worker, hello_real_ns),
	offsetof(struct live_worker, goodbye_order),
	offsetof(struct live_worker, last_boot_ns),
	offsetof(struct live_worker, totals_boot_ns),
	offsetof(struct live_worker, sample_boot_ns),
	offsetof(struct live_worker, probe_boot_ns),
	offsetof(struct live_worker, events),
	offsetof(struct live_worker, missing),
};
static const size_t worker_gauges[] = {
	offsetof(struct live_worker, cpu_percent), offsetof(struct live_worker, rss_bytes),
	offsetof(struct live_worker, running),	   offsetof(struct live_worker, threads),
	offsetof(struct live_worker, limit_bytes), offsetof(struct live_worker, executing),
	offsetof(struct live_worker, ready),	   offsetof(struct live_worker, long_running),
	offsetof(struct live_worker, fetching),	   offsetof(struct live_worker, managed),
	offsetof(struct live_worker, spilled),
};

enum { GOODBYE = 1, KILLED = 2, HAS_TOTALS = 4, NOTES = 8 };

static void pack_numbers(msgpack_packer *pk, const void *of, const size_t *offset, size_t n)
{
	pack_array(pk, n);
	for (size_t i = 0; i < n; i++)
		pack_u64(pk, *(const uint64_t *)(const void *)((const char *)of + offset[i]));
}

static void pack_values(msgpack_packer *pk, const uint64_t *v, size_t n)
{
	pack_array(pk, n);
	for (size_t i = 0; i < n; i++)
		pack_u64(pk, v[i]);
}

static void save_names(struct items *c)
{
	msgpack_packer *pk = items_add(c, CHECKPOINT_NAMES, 1);

	pack_array(pk, 2 * (size_t)LIVE_VALUES);
	for (unsigned int i = 0; i < LIVE_VALUES; i++) {
		struct live_name name = live_name(i);

		pack_text(pk, name.part);
		pack_text(pk, name.key);
	}
}

static void save_sums(const struct live *live, struct items *c)
{
	msgpack_packer *pk = items_add(c, CHECKPOINT_SUMS, 6);

	live_pack_sums(live, pk);
	pack_numbers(pk, live, live_numbers, COUNT_OF(live_numbers));
	pack_bool(pk, live->returned);
	pack_values(pk, live->sum, LIVE_VALUES);
	pack_values(pk, live->total, LIVE_VALUES);
	pack_values(pk, live->without, LIVE_VALUES);
}

static void save_worker(const struct live_worker *w, struct items *c)
{
	msgpack_packer *pk = items_add(c, CHECKPOINT_WORKER, 10);

	pack_bin(pk, w->id, sizeof(w->id));
	pack_text(pk, w->address);
	pack_text(pk, w->name);
	pack_text(pk, w->host);
	pack_u64(pk, (w->goodbye ? GOODBYE : 0u) | (w->killed ? KILLED : 0u) |
			     (w->has_totals ? HAS_TOTALS : 0u) | (w->notes ? NOTES : 0u));
	pack_numbers(pk, w, worker_numbers, COUNT_OF(worker_numbers));
	pack_array(pk, COUNT_OF(worker_gauges));
	for (size_t i = 0; i < COUNT_OF(worker_gauges); i++)
		pack_f64(pk, *(const double *)(const void *)((const char *)w + worker_gauges[i]));
	pack_values(pk, w->row.known, KNOWN_WORDS(LIVE_VALUES));
	pack_values(pk, w->row.value, LIVE_VALUES);
	ranges_pack(pk, &w->ended);
}

void live_save(const struct live *live, struct items *c)
{
	const struct live_worker *w;
	const struct live_seen *seen;
	msgpack_packer *pk;
	size_t at = 0;

	save_names(c);
	save_sums(live, c);
	for (w = live->workers; w; w = w->next)
		save_worker(w, c);
	while ((seen = table_next(&live->seen, &at))) {
		if (seen->worker)
			continue;
		pk = items_add(c, CHECKPOINT_FOLDED, 2);
		pack_bin(pk, seen->id, sizeof(seen->id));
		pack_bool(pk, seen->lost);
	}
}

/* Restoring */

static const msgpack_object_array *list_of(const msgpack_object *o)
{
	return o->type == MSGPACK_OBJECT_ARRAY ? &o->via.array : NULL;
}

/* Values that the checkpoint lacks stay 0. */
static bool take_values(const struct live_places *places, const msgpack_object *o, uint64_t *v)
{
	const msgpack_object_array *list = list_of(o);
	uint64_t value;

	if (!list || list->size != places->n)
		return false;
	for (uint32_t i = 0; i < list->size; i++) {
		if (!object_u64(&list->ptr[i], &value))
			return false;
		if (places->at[i] < LIVE_VALUES)
			v[places->at[i]] = value;
	}
	return true;
}

static bool take_known(const struct live_places *places, const msgpack_object *o,
		       struct live_row *row)
{
	const msgpack_object_array *list = list_of(o);
	uint64_t word = 0;

	if (!list || list->size != KNOWN_WORDS(places->n))
		return false;
	for (uint32_t i = 0; i < places->n; i++) {
		unsigned int at = places->at[i];

		if (i % 64 == 0 && !object_u64(&list->ptr[i / 64], &word))
			return false;
		if (at < LIVE_VALUES && word >> (i % 64) & 1u)
			row->known[at / 64] |= UINT64_C(1) << (at % 64);
	}
	return true;
}

static bool take_numbers(const msgpack_object *o, void *to, const size_t *offset, size_t n)
{
	const msgpack_object_array *list = list_of(o);
	uint64_t v;

	for (uint32_t i = 0; list && i < list->size && i < n; i++) {
		if (!object_u64(&list->ptr[i], &v))
			return false;
		*(uint64_t *)(void *)((char *)to + offset[i]) = v;
	}
	return list != NULL;
}

static bool take_gauges(const msgpack_object *o, struct live_worker *w)
{
	const msgpack_object_array *list = list_of(o);

	for (uint32_t i = 0; list && i < list->size && i < COUNT_OF(worker_gauges); i++) {
		double v = (double)NAN;

		object_f64(&list->ptr[i], &v);
		*(double *)(void *)((char *)w + worker_gauges[i]) = v;
	}
	return list != NULL;
}

static bool take_text(const msgpack_object *o, char *to, size_t size)
{
	struct text text;

	if (!object_text(o, &text))
		return false;
	text_copy(to, size, text);
	return true;
}

static int load_names(struct live *live, const msgpack_object_array *item)
{
	const msgpack_object_array *list = item->size > 1 ? list_of(&item->ptr[1]) : NULL;
	struct live_places *places = &live->places;
	unsigned int guess = 0;
	struct text part;
	int at;

	if (!list || list->size % 2 || list->size / 2 > LIVE_PLACES)
		return -EBADMSG;
	places->n = list->size / 2;
	for (uint32_t i = 0; i < places->n; i++) {
		if (!object_text(&list->ptr[2 * i], &part))
			return -EBADMSG;
		at = live_index(part, &list->ptr[2 * i + 1], &guess);
		places->at[i] = (uint16_t)(at < 0 ? LIVE_VALUES : at);
	}
	return 0;
}

/* As if its workers' totals had been read: none of them had a value whose name is missing there. */
static void count_without(struct live *live)
{
	bool named[LIVE_VALUES + 1] = {false};

	for (uint32_t i = 0; i < live->places.n; i++)
		named[live->places.at[i]] = true;
	for (unsigned int i = 0; i < LIVE_VALUES; i++) {
		if (!named[i])
			live->without[i] = live->counted;
	}
}

static int load_sums(struct live *live, const msgpack_object_array *item)
{
	const msgpack_object *v = item->ptr;

	if (item->size < 7 || v[1].type != MSGPACK_OBJECT_MAP ||
	    v[3].type != MSGPACK_OBJECT_BOOLEAN ||
	    !take_numbers(&v[2], live, live_numbers, COUNT_OF(live_numbers)) ||
	    !take_values(&live->places, &v[4], live->sum) ||
	    !take_values(&live->places, &v[5], live->total) ||
	    !take_values(&live->places, &v[6], live->without))
		return -EBADMSG;
	live_take_sums(live, &v[1]);
	live->returned = v[3].via.boolean;
	count_without(live);
	return 0;
}

static int load_worker(struct live *live, const msgpack_object_array *item)
{
	const uint8_t *id = items_id(item, 1);
	const msgpack_object *v = item->ptr;
	size_t before = live->seen.n;
	struct live_worker *w;
	uint64_t flags;
	bool folded;

	if (item->size < 11 || !id || !items_u64(item, 5, &flags))
		return -EBADMSG;
	w = live_worker(live, id, &folded);
	if (!w && !folded)
		return -ENOMEM;
	if (folded || live->seen.n == before || !take_text(&v[2], w->address, sizeof(w->address)) ||
	    !take_text(&v[3], w->name, sizeof(w->name)) ||
	    !take_text(&v[4], w->host, sizeof(w->host)) ||
	    !take_numbers(&v[6], w, worker_numbers, COUNT_OF(worker_numbers)) ||
	    !take_gauges(&v[7], w) || !take_known(&live->places, &v[8], &w->row) ||
	    !take_values(&live->places, &v[9], w->row.value))
		return -EBADMSG;
	/* What an earlier version had counted is in the sums, without what was refused. */
	if (v[6].via.array.size < COUNT_OF(worker_numbers))
		w->missing = w->row.value[LIVE_records_refused];
	w->goodbye = flags & GOODBYE;
	w->killed = flags & KILLED;
	w->has_totals = flags & HAS_TOTALS;
	w->notes = flags & NOTES;
	live->gone_count += w->goodbye;
	return ranges_unpack(&w->ended, &v[10]);
}

int live_load(struct live *live, const msgpack_object_array *item)
{
	const uint8_t *id;
	uint64_t kind;

	if (!items_u64(item, 0, &kind))
		return -EBADMSG;
	if (kind == CHECKPOINT_NAMES)
		return load_names(live, item);
	if (kind == CHECKPOINT_SUMS)
		return load_sums(live, item);
	if (kind == CHECKPOINT_WORKER)
		return load_worker(live, item);
	if (kind > CHECKPOINT_FOLDED) /* from a newer version */
		return 0;
	id = items_id(item, 1);
	if (kind != CHECKPOINT_FOLDED || !id || item->size < 3 ||
	    item->ptr[2].type != MSGPACK_OBJECT_BOOLEAN)
		return -EBADMSG;
	return live_add_folded(live, id, item->ptr[2].via.boolean);
}

void live_loaded(struct live *live)
{
	struct live_worker *w = live->workers, *next;

	/* Each was prepended, so the order is reversed. */
	for (live->workers = NULL; w; w = next) {
		next = w->next;
		w->next = live->workers;
		live->workers = w;
	}
}
