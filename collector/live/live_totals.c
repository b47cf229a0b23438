/* SPDX-License-Identifier: BSD-3-Clause */
/* live_totals.c - puts a worker's totals into its row, the sums, and the input of rates. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collector/live/live_parts.h"
#include "common/rows.h"
#include "common/task.h"

struct live_name live_name(unsigned int i)
{
	if (i < LIVE_REST)
		return (struct live_name){"tasks", task_name(TASK_FIELDS + i)};
	if (i < LIVE_AMOUNT)
		return (struct live_name){"unattributed",
					  task_name(TASK_FIELDS + LIVE_TASK + i - LIVE_REST)};
	if (i < LIVE_PLAIN)
		return (struct live_name){row_amounts[i - LIVE_AMOUNT].part,
					  row_amounts[i - LIVE_AMOUNT].name};
	return (struct live_name){"", row_totals[i - LIVE_PLAIN].name};
}

/* The values that can be in this map, to limit the search for an unknown name. */
static void range_of(struct text part, unsigned int *from, unsigned int *to)
{
	static const struct {
		const char *part;
		unsigned int from, to;
	} ranges[] = {
		{"", LIVE_PLAIN, LIVE_VALUES},
		{"tasks", 0, LIVE_REST},
		{"unattributed", LIVE_REST, LIVE_AMOUNT},
	};
	size_t i;

	*from = LIVE_AMOUNT;
	*to = LIVE_PLAIN;
	for (i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		if (text_is(part, ranges[i].part)) {
			*from = ranges[i].from;
			*to = ranges[i].to;
		}
	}
}

/* Agents write the values in the order of their tables: the next one usually follows the last. */
int live_index(struct text part, const msgpack_object *key, unsigned int *guess)
{
	unsigned int i, at = *guess, from, to;
	struct text text;
	struct live_name name;

	if (!object_text(key, &text))
		return -1;
	range_of(part, &from, &to);
	for (i = from; i < to; i++, at++) {
		if (at < from || at >= to)
			at = from;
		name = live_name(at);
		if (text_is(text, name.key) && text_is(part, name.part)) {
			*guess = at + 1;
			return (int)at;
		}
	}
	return -1;
}

static void take_map(struct live_row *row, const char *part, const msgpack_object *map)
{
	struct text in = {part, strlen(part)};
	unsigned int guess = 0;
	uint64_t value;
	uint32_t i;
	int at;

	if (!map || map->type != MSGPACK_OBJECT_MAP)
		return;
	for (i = 0; i < map->via.map.size; i++) {
		if (!object_u64(&map->via.map.ptr[i].val, &value))
			continue;
		at = live_index(in, &map->via.map.ptr[i].key, &guess);
		if (at < 0)
			continue;
		row->value[at] = value;
		row->known[at / 64] |= UINT64_C(1) << (at % 64);
	}
}

/* Rates */

/* counts of tasks and outside of tasks, or one amount */
static const struct {
	unsigned int count, amount;
	bool is_amount;
} layers[CREMA_LAYERS] = {
#define FROM_ALL(count) CREMA_C_##count, 0, false
#define FROM_PROCESS(count) 0, LIVE_process_##count, true
#define LAYER(id, count, from, ...) {FROM_##from(count)},
#include "counters.def"
};

uint64_t live_layer(const uint64_t *value, enum crema_layer_id layer)
{
	if (layers[layer].is_amount)
		return value[layers[layer].amount];
	return value[LIVE_TASK + layers[layer].count] + value[LIVE_REST + layers[layer].count];
}

bool live_layer_known(const struct live_row *row, enum crema_layer_id layer)
{
	if (layers[layer].is_amount)
		return live_known(row, layers[layer].amount);
	return live_known(row, LIVE_TASK + layers[layer].count) &&
	       live_known(row, LIVE_REST + layers[layer].count);
}

bool live_layer_unseen(const struct live_cluster *c, enum crema_layer_id layer)
{
	unsigned int at =
		layers[layer].is_amount ? layers[layer].amount : LIVE_TASK + layers[layer].count;

	return c->unread || (c->workers_counted && c->without[at] == c->workers_counted);
}

static void put(struct live_anchor *a, unsigned int i, bool known, uint64_t value)
{
	a->value[i] = value;
	a->known |= (uint64_t)known << i;
}

static void take_anchor(struct live_worker *w, uint64_t boot_ns)
{
	const struct live_row *row = &w->row;
	struct live_anchor *now = &w->now;
	unsigned int i;

	memset(now, 0, sizeof(*now));
	now->boot_ns = boot_ns;
	for (i = 0; i < CREMA_LAYERS; i++)
		put(now, LIVE_RATE_LAYER + i, live_layer_known(row, i), live_layer(row->value, i));
	for (i = 0; i < CREMA_TIMES; i++)
		put(now, LIVE_RATE_CLASS + i,
		    live_known(row, LIVE_OWN + i) && live_known(row, LIVE_POOL + i),
		    row->value[LIVE_OWN + i] + row->value[LIVE_POOL + i]);
	put(now, LIVE_RATE_CPU, live_known(row, LIVE_process_cpu_ns),
	    row->value[LIVE_process_cpu_ns]);
	put(now, LIVE_RATE_TASKS, live_known(row, LIVE_tasks_done), row->value[LIVE_tasks_done]);
	put(now, LIVE_RATE_EVENTS, true, w->events);
	if (!w->anchor[1].boot_ns) {
		w->anchor[0] = w->anchor[1] = *now;
	} else if (boot_ns - w->anchor[1].boot_ns >= LIVE_ANCHOR_NS) {
		w->anchor[0] = w->anchor[1];
		w->anchor[1] = *now;
	}
}

double live_rate(const struct live_worker *w, enum live_rate rate)
{
	const struct live_anchor *from = &w->anchor[0], *now = &w->now;
	bool time = rate >= LIVE_RATE_CLASS && rate <= LIVE_RATE_CPU;
	double seconds, change;

	if (!from->boot_ns || now->boot_ns <= from->boot_ns ||
	    !(from->known & now->known & UINT64_C(1) << rate))
		return (double)NAN;
	seconds = (double)(now->boot_ns - from->boot_ns) / 1e9;
	change = (double)now->value[rate] - (double)from->value[rate];
	if (change < 0)
		change = 0;
	return (time ? change / 1e9 : change) / seconds;
}

/* Sums */

/* The sums are of the latest values; to the outside they are reported as their highest so far. */
static void add_change(struct live *live, const struct live_row *old, const struct live_row *row,
		       bool first)
{
	unsigned int i;

	for (i = 0; i < LIVE_VALUES; i++) {
		live->sum[i] += row->value[i] - old->value[i];
		if (live->sum[i] > live->total[i] && live->sum[i] < UINT64_MAX / 2)
			live->total[i] = live->sum[i];
		live->without[i] += !live_known(row, i);
		if (!first)
			live->without[i] -= !live_known(old, i);
	}
}

static void take_parts(struct live_row *row, const msgpack_object *map)
{
	const char *part, *last = "";

	take_map(row, "", map);
	take_map(row, "tasks", get(map, "tasks"));
	take_map(row, "unattributed", get(map, "unattributed"));
	for (unsigned int i = 0; i < CREMA_TOTALS_AMOUNTS; i++) {
		part = row_amounts[i].part;
		if (strcmp(part, last) != 0)
			take_map(row, part, get(map, part));
		last = part;
	}
}

void live_totals(struct live *live, struct live_worker *w, const msgpack_object *map)
{
	uint64_t boot_ns = get_u64(map, "boot_ns", 0);
	const msgpack_object *notes = get(map, "notes");
	struct live_row row;

	if (boot_ns > w->last_boot_ns)
		w->last_boot_ns = boot_ns;
	if (w->has_totals && boot_ns < w->totals_boot_ns)
		return;
	/* A value that is no longer known keeps its last known value, and is marked. */
	row = w->row;
	memset(row.known, 0, sizeof(row.known));
	take_parts(&row, map);
	w->notes = w->notes ||
		   (notes && notes->type == MSGPACK_OBJECT_ARRAY && notes->via.array.size > 0);
	add_change(live, &w->row, &row, !w->has_totals);
	live->counted += !w->has_totals;
	w->has_totals = true;
	w->totals_boot_ns = boot_ns;
	w->row = row;
	take_anchor(w, boot_ns);
}
