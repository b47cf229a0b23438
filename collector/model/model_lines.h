/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model_lines.h - sampled Python stacks of tasks, from the agents' LINES messages.
 *
 * A row is one list of places (innermost first) of one worker's tasks of a prefix, dataset and
 * span. Its numbers are cumulative: of two messages about a row, the one with the larger numbers is
 * newer. Places and lists are interned over all workers: equal ones are equal pointers. Rows beyond
 * MODEL_LINES are dropped, and their worker is marked.
 */
#ifndef CREMA_COLLECTOR_MODEL_MODEL_LINES_H
#define CREMA_COLLECTOR_MODEL_MODEL_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/pack.h"
#include "common/table.h"
#include "ids.h"

#define MODEL_LINES 131072u
#define MODEL_LINE_DEPTH 128u
#define LINE_CLASSES_TOLD (CREMA_TIMES + 1u)
#define LINE_TOLD_OTHER CREMA_TIMES /* blocked on something that the agent could not determine */

struct line_place {
	const char *function, *file;
	uint64_t line; /* 0: unknown */
	bool user;     /* in no installed package, and not part of the interpreter */
};

struct line_list {
	uint32_t depth;
	const struct line_place *const *place; /* innermost first */
};

struct line_numbers {
	uint64_t cut; /* samples that lack inner frames */
	uint64_t clock_cpu_ns, clock_runqueue_ns;
	uint64_t samples[LINE_CLASSES_TOLD], ns[LINE_CLASSES_TOLD];
	/* Of others that waited for the interpreter lock while this stack held it. */
	uint64_t held_samples, held_ns;
	/* Samples by the byte, by enum crema_lines_byte. */
	uint64_t byte_samples[CREMA_LINES_BYTES], bytes[CREMA_LINES_BYTES];
	double byte_variance[CREMA_LINES_BYTES]; /* bytes squared */
	/* Waits longer than the threshold, exact. */
	uint64_t waits[CREMA_TIMES], waited_ns[CREMA_TIMES];
	/* Large allocations, by enum crema_lines_large. */
	int64_t large[CREMA_LINES_LARGE];
	uint64_t large_changes, large_epoch;
};

/* The newest epoch of a worker's maximum of large allocations under a span. */
struct line_peak {
	const struct worker *worker;
	const char *span;
	uint64_t epoch;
};

struct line_stack {
	struct worker *worker;
	uint64_t table, number;
	const char *span, *prefix;
	const char *dataset; /* NULL: none, or unknown when it was sampled */
	const char *why;     /* why there are no places; NULL: there are */
	bool pool;
	bool outside;	/* of a thread without a task: only held_* counts */
	bool outer_cut; /* outermost places are missing */
	const struct line_list *list;
	const struct line_peak *peak; /* NULL: no large allocation */
	struct line_numbers n;
};

/* Reported by a worker's agent; the latest. */
struct lines_told {
	bool known, clocks, cut; /* cut: some rows were beyond MODEL_LINES */
	uint64_t boot_ns, interval_ns;
	const char *state;
	uint64_t large_bytes; /* allocations of this size and more are recorded; 0: none */
	uint64_t cpu_ns;      /* of its latest agent, since that agent began */
};

struct lines_model {
	struct table place_table, list_table, row_table, peak_table;
	struct {
		struct line_stack **v;
		size_t n, cap;
	} rows;
};

struct model;
struct worker;
int model_feed_lines(struct model *m, struct worker *w, const msgpack_object *map);
/* NULL: unknown */
const struct line_stack *model_line_stack(const struct model *m, struct worker *w, uint64_t table,
					  uint64_t number);
void model_lines_release(struct lines_model *l);

#endif
