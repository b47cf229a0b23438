/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * span_part.h - the part of a Dask span that one graph is, and what its tasks consume.
 *
 * Dask puts what all clients submit at the same time into one span, and keeps a task group in the
 * span that had it first. So a worker names the span of a coffea task "SPAN.GENERATIONk": the
 * scheduler's number of the graph (one for all that come within 100 ms by submit and map, within 60
 * s by compute, persist and get: Client's fifo_timeout), and what the task does: c a chunk
 * (followed by a hash of its processor's key), p preprocessing (of the Client.map()), m a merge (of
 * what it merges), s the processor on its way (of its key), u another task that takes the result of
 * one of these (of the graph that gave it: a hash of that name, in older agents from its point on;
 * its own number is 0). Other tasks, tasks in a span that the user opened, and those of older
 * agents have the plain id of the span.
 *
 * What a crema.measure() submitted and Dask put into another span is "SPAN.0bBLOCK", with the id of
 * the block's own span. What coffea submitted elsewhere and Dask put into the span of a block is
 * named as in a span of Dask's.
 *
 * A part, or a whole span, keeps the smallest key hashes of its tasks, and the smallest of those
 * that its tasks consume. As each task names the smallest of its own, a consumer
 * shares one with its producers.
 */
#ifndef CREMA_COLLECTOR_MODEL_SPAN_PART_H
#define CREMA_COLLECTOR_MODEL_SPAN_PART_H

#include "common/table.h"
#include "common/task.h"

#define SMALLEST_MAX 32u
#define SPAN_PLAIN "coffea-" /* begins the spans of coffea without Dask (runs/runs_plain.h) */

struct model;

struct smallest { /* in order */
	uint64_t *v;
	size_t n, cap;
};

struct span_part {
	const char *name;  /* as on the wire; interned, as `span` and `prefix` are */
	const char *span;  /* Dask's id */
	const char *block; /* the crema.measure() that it is of; NULL: `span` says it */
	char kind;	   /* 0: a whole span, or the part of it that a block has */
	double generation;
	uint32_t graph;	       /* 0 of a merge: unknown */
	uint32_t graph_before; /* as agents named it that left Dask's id out */
	const char *prefix;
	bool prefixes; /* several */
	bool users;    /* a whole span that the user opened */
	struct smallest keys, consumed;
	struct span_part *sibling; /* another one of that span */
};

/* True if its tasks ran without Dask. */
bool span_is_plain(struct text span);
/* A record that names its span, whether or not it is kept: 0 or -ENOMEM. */
int span_part_feed(struct model *m, const struct task_record *r);
/* NULL: no record named it. */
const struct span_part *span_part_find(const struct model *m, const char *name);
/* The first of Dask's span; NULL: none. */
const struct span_part *span_part_first(const struct model *m, const char *span);
/* Dask's id of a span as it is on the wire; interned. NULL for NULL. */
const char *span_part_span(const struct model *m, const char *name);
/* The same, but the block's if it has one: what is asked for. */
const char *span_part_owner(const struct model *m, const char *name);
bool smallest_has(const struct smallest *s, uint64_t hash);
void span_parts_release(struct model *m);

#endif
