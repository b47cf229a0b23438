/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blocking.h - the call sites of a run's long waits.
 *
 * Sites of the model are merged if the names of their wait, prefix, object, innermost line of the
 * user's code and innermost BLOCKING_FRAMES native frames (without libc's and ours) are equal.
 */
#ifndef CREMA_COLLECTOR_REPORT_BLOCKING_H
#define CREMA_COLLECTOR_REPORT_BLOCKING_H

#include "collector/emit/emit_json.h"
#include "collector/emit/emit_table.h"
#include "collector/runs/runs.h"

#define BLOCKING_FRAMES 3
#define BLOCKING_ROWS 100 /* in JSON; the rest is counted */

struct blocking_row {
	enum crema_time_id wait;
	const char *prefix, *object;	 /* object: file, peer or kind; NULL: none */
	const struct line_place *line;	 /* innermost of the user's code; NULL: none, or unknown */
	bool python;			 /* its Python frames are known */
	const struct line_place *holder; /* of the longest wait; NULL: unknown */
	const char *line_text, *holder_text; /* of the longest wait; NULL: unknown */
	const char *frame[BLOCKING_FRAMES];
	uint32_t frames;
	const struct site *site, *longest; /* those with most time, and with the longest wait */
	struct waits waits;
};

struct blocking {
	ARRAY(struct blocking_row *) rows; /* most time first */
	ARRAY(struct blocking_library *) libraries;
	struct table table, library_table;
	struct arena arena;
	struct waits cut; /* sites beyond the model's table, for all runs */
	bool no_memory;
	/* Over the life of the run's workers. */
	bool known;
	uint64_t threshold_ns; /* the smallest one */
	uint64_t waits, waits_ns, received;
};

int blocking_gather(struct blocking *b, const struct run *run);
void blocking_release(struct blocking *b);
/* The call site of the longest wait of a class; NULL: none. b: NULL if there is no record. */
const struct blocking_row *blocking_longest(const struct blocking *b, enum crema_time_id wait);
void blocking_json(struct blocking *b, const struct run *run, struct json *j);
/* Parts of a row: "lock", "gil"; its places; the whole stack, as the member `name`. */
const char *blocking_wait(const struct blocking_row *r);
/* All cells except its frames and stacks. */
void blocking_cells(const struct blocking_row *r, cell_put put, void *arg);
void blocking_frames_json(const struct blocking_row *r, struct json *j, const char *name);
/* Python frames as lines_frames_json(); NULL: unknown. */
void blocking_python_json(const struct line_list *list, struct json *j, const char *name);
void blocking_stack_json(struct blocking *b, const struct model *m, const struct site *s,
			 struct json *j, const char *name);
void blocking_completeness_json(const struct blocking *b, struct json *j);
/* Merges rows that look the same there. */
void blocking_table(const struct blocking *b, const struct run *run, struct sink *s, bool colour);

#endif
