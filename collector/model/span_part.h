/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * span_part.h - the part of a Dask span that belongs to one graph, and what its tasks consume.
 *
 * Dask puts what all clients submit at the same time into one span, and keeps a task group in the
 * span that had it first. So a worker names the span of a coffea task "SPAN.GENERATIONk".
 * GENERATION is the scheduler's number of the graph: one for all that arrive within 100 ms by
 * submit and map, within 60 s by compute, persist and get (Client's fifo_timeout). k is what the
 * task does, followed by a hash:
 *
 * - c: a chunk (hash of its processor's key)
 * - p: preprocessing (of the Client.map())
 * - m: a merge (of what it merges)
 * - s: the transfer of the processor (of its key)
 * - u: another task that takes the result of one of these (of the name of the graph that produced
 *   it, in older agents of that name from its dot on; its own number is 0)
 *
 * Other tasks, those of older agents, and all but merges in a span that the user opened have the
 * plain id of the span.
 *
 * Work that a crema.measure() block submitted and Dask put into another span is "SPAN.0bBLOCK",
 * with the id of the block's span. Work that coffea submitted elsewhere and Dask put into the span
 * of a block is named as above.
 *
 * A part, or a whole span, keeps the smallest key hashes of its tasks, and the smallest of
 * those that its tasks consume. As each task reports its smallest ones, a consumer shares one
 * with its producers.
 */
#ifndef CREMA_COLLECTOR_MODEL_SPAN_PART_H
#define CREMA_COLLECTOR_MODEL_SPAN_PART_H

#include "common/table.h"
#include "common/task.h"

#define SMALLEST_MAX 32u
#define SPAN_PLAIN "coffea-" /* prefix of the spans of coffea without Dask (runs/runs_plain.h) */

struct model;

struct smallest { /* sorted */
	uint64_t *v;
	size_t n, cap;
};

struct span_part {
	const char *name;  /* as on the wire; interned, as are `span` and `prefix` */
	const char *span;  /* Dask's id */
	const char *block; /* the crema.measure() that it belongs to; NULL: see `span` */
	char kind;	   /* 0: a whole span, or the part of it in a block */
	double generation;
	uint32_t graph;	       /* of a merge, 0: unknown */
	uint32_t graph_before; /* as named by agents that left Dask's id out */
	const char *prefix;
	bool prefixes; /* it has several */
	bool users;    /* in a span that the user opened: all of it, or merges */
	struct smallest keys, consumed;
	struct span_part *sibling; /* another part of that span */
};

/* True if its tasks ran without Dask. */
bool span_is_plain(struct text span);
/* Takes a record that names its span, whether or not the record is kept: 0 or -ENOMEM. */
int span_part_feed(struct model *m, const struct task_record *r);
/* NULL: no record named it. */
const struct span_part *span_part_find(const struct model *m, const char *name);
/* The first part of a Dask span; NULL: none. */
const struct span_part *span_part_first(const struct model *m, const char *span);
/* Dask's id of a span from its name on the wire; interned. NULL for NULL. */
const char *span_part_span(const struct model *m, const char *name);
/* The same, but the block's if it has one: the id that users request. */
const char *span_part_owner(const struct model *m, const char *name);
bool smallest_has(const struct smallest *s, uint64_t hash);
void span_parts_release(struct model *m);

#endif
