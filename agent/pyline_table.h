/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pyline_table.h - sampled Python stacks, each kept once, with how often and in which state it was.
 *
 * A place is a function and a line of it; a row is a list of places under one span, prefix and
 * dataset. Both tables are bounded. What finds no room is counted in a row without places
 * (PYLINES_FULL), one of which every span and prefix can have as long as there are rows at all.
 * pyline_table_clear() starts over: a row's numbers are sums since then, and `table` distinguishes
 * these periods. One thread.
 */
#ifndef CREMA_AGENT_PYLINE_TABLE_H
#define CREMA_AGENT_PYLINE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/py_stack.h"
#include "ids.h"

#define PYLINE_PLACES 4096u
#define PYLINE_ROWS 1024u
#define PYLINE_ROWS_SPARE 64u /* the last of them: for rows without places */
#define PYLINE_FRAMES 49152u  /* of all rows */
#define PYLINE_TEXT (384u << 10)
#define PYLINE_KEYS 8192u
#define PYLINE_CLASSES (CREMA_TIMES + 1u)
#define PYLINE_OTHER CREMA_TIMES /* in no intercepted call: page faults, too */

enum pyline_why {
	PYLINES_WHOLE, /* it has places */
	PYLINES_TORN,  /* the stack changed too fast, or was none */
	PYLINES_NONE,  /* a thread without Python */
	PYLINES_FULL,  /* no room */
};

struct pyline_place {
	uint64_t hash;
	uint32_t function, file, line; /* function, file: offsets of text */
	bool user;
};

struct pyline_row {
	uint64_t hash;
	uint32_t span, prefix, dataset; /* string ids; dataset 0: none, or not known yet */
	uint8_t pool, why;
	bool outside; /* of a thread without a task, which only holds the lock: without prefix */
	uint16_t depth;
	uint32_t first; /* of its frames */
	uint32_t cut;	/* samples that lack inner frames */
	bool changed;	/* since it was sent */
	bool told;	/* it was sent for a STACK message that names it */
	bool outer_cut; /* outermost frames are missing */
	uint32_t samples[PYLINE_CLASSES];
	uint64_t ns[PYLINE_CLASSES];
	uint64_t clock_cpu_ns, clock_runqueue_ns; /* of what is in ns[CREMA_T_cpu] */
	uint32_t held_samples; /* samples of threads that waited for the lock while it held it */
	uint64_t held_ns;      /* the time that these stand for */
	/* Waits longer than the threshold, exact (pylines_bytes.c). */
	uint32_t waits[CREMA_TIMES];
	uint64_t waited_ns[CREMA_TIMES];
	/* Samples by the byte (pylines_bytes.c), by enum crema_lines_byte. */
	uint32_t byte_samples[CREMA_LINES_BYTES];
	uint64_t bytes[CREMA_LINES_BYTES];
	double byte_variance[CREMA_LINES_BYTES];
	/* Large allocations (pylines_large.c), by enum crema_lines_large; sums of differences, so
	 * that those of a worker's tables add up. */
	int64_t large[CREMA_LINES_LARGE];
	uint64_t large_changes, large_epoch;
};

struct pyline_table {
	uint32_t places, rows, frames, text_used;
	struct pyline_place place[PYLINE_PLACES];
	struct pyline_row row[PYLINE_ROWS];
	uint16_t frame[PYLINE_FRAMES];
	uint16_t place_index[2 * PYLINE_PLACES], row_index[2 * PYLINE_ROWS]; /* 0: none, else + 1 */
	struct {
		uint64_t key;
		uint16_t place; /* + 1 */
	} known[PYLINE_KEYS];	/* by py_frame.key: the latest with that slot */
	bool full;		/* something found no room */
	char text[PYLINE_TEXT];
};

/* The place that was found for this frame before, or -1. */
int pyline_table_known(const struct pyline_table *t, uint64_t key);
/* -1: no room. */
int pyline_table_place(struct pyline_table *t, uint64_t key, const char *function, const char *file,
		       uint32_t line, bool user);
/* The row of these places (innermost first; depth 0: `why` is the reason that there are none).
 * Without room for it, the row that counts such samples; NULL if there is no room for that
 * either. */
struct pyline_row *pyline_table_row(struct pyline_table *t, const struct pyline_row *like,
				    const uint16_t *place);
void pyline_table_clear(struct pyline_table *t);

#endif
