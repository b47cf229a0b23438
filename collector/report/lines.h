/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lines.h - CPU and waits of a run's tasks by line of Python, estimated from samples.
 *
 * Each sample stands for the time since the previous one, so sums are seconds. What a thread that
 * could run has of them is divided into computing and waiting for a core as its worker's clocks
 * are. A share p of n samples is uncertain by 1.96 sqrt(p (1 - p) / n): lines_error(). Of threads
 * that tasks themselves run in; `pool` has the others that worked for them.
 *
 * While threads wait for the interpreter lock, the stack that holds it has their time as held_s,
 * whichever thread it is of; lines_unheld() is the rest of these waits, during which the lock
 * changed hands while the agent read it.
 */
#ifndef CREMA_COLLECTOR_REPORT_LINES_H
#define CREMA_COLLECTOR_REPORT_LINES_H

#include "collector/emit/emit_json.h"
#include "collector/emit/emit_table.h"
#include "collector/runs/runs.h"

#define LINES_ROWS 100	 /* lines in JSON; the rest is counted */
#define LINES_STACKS 500 /* stacks in JSON */
#define LINES_STATES 6

/* Seconds by class: row_times[], and what could not be told. */
struct line_sum {
	uint64_t samples, class_samples[LINE_CLASSES_TOLD];
	double seconds, class_s[LINE_CLASSES_TOLD];
	/* Of others that waited for the interpreter lock while it was held here. */
	uint64_t held_samples;
	double held_s;
};

/* The innermost line of the user's own code. */
struct line_row {
	const struct line_place *place; /* of any of its functions; NULL: none of the user's */
	struct line_sum sum;
	const struct line_list *most; /* the stack below it that was seen most */
	uint64_t most_samples;
};

/* One stack of a kind of task and dataset. */
struct line_stack_row {
	const char *prefix, *why;
	const char *dataset; /* NULL: of none, or not known when it was sampled */
	bool pool, outside;  /* outside: of a thread without a task, which held the lock */
	const struct line_list *list;
	struct line_sum sum;
	ARRAY(const struct line_stack *) parts; /* of workers, which may have several */
};

/* Which part of the time in which its threads could run a worker's threads ran. */
struct line_ran {
	uint64_t cpu_ns, runqueue_ns;
};

struct lines {
	ARRAY(struct line_row *) rows;	       /* most time first; of own threads */
	ARRAY(struct line_stack_row *) stacks; /* the same, all threads */
	struct table row_table, stack_table;
	struct arena arena;
	struct line_sum all, pool; /* of own threads, of others */
	struct line_ran *ran;	   /* by the worker's place in the model */
	uint64_t held_samples;
	double held_s;		   /* of all rows */
	uint64_t cut;		   /* samples of `all` and `pool` that lack inner frames */
	uint64_t torn, none, full; /* samples without a stack */
	/* Of the run's workers. */
	struct {
		const char *state;
		size_t workers;
	} state[LINES_STATES];
	size_t states, unknown; /* unknown: workers whose agents told nothing of it */
	uint64_t agent_cpu_ns;
	bool beyond, clockless; /* rows were left out; computing and waiting could not be told */
};

int lines_gather(struct lines *l, const struct run *run);
void lines_release(struct lines *l);
void line_sum_add(struct line_sum *to, const struct line_sum *s);
/* Adds one worker's part of a stack. */
void lines_add_part(const struct lines *l, const struct line_stack *part, struct line_sum *to);
/* Half the width of the 95 % interval of a share of n samples. */
double lines_error(double share, uint64_t samples);
/* Which part of the time of own threads that is. */
double lines_share(const struct lines *l, const struct line_sum *s);
/* The line with most time of a class (LINE_CLASSES_TOLD: of all) and its share of that; NULL: none,
 * or by fewer samples than `least`. */
const struct line_row *lines_hottest(const struct lines *l, unsigned int class, uint64_t least,
				     double *share);
/* The line at which the interpreter lock was held for most of the time that others waited for it,
 * and its share of that, as lines_hottest(). */
const struct line_row *lines_holder(const struct lines *l, uint64_t least, double *share);
/* Seconds of waits for it of which the holder is not known. */
double lines_unheld(const struct lines *l);
/* "own", "pool", or "outside" of tasks */
const char *line_thread_name(const struct line_stack_row *r);
/* The first place of the user's own code from `from` outwards; the depth or NULL: there is none. */
uint32_t lines_user_at(const struct line_list *list, uint32_t from);
const struct line_place *lines_user_place(const struct line_list *list, uint32_t from);
/* "analysis.py:42 process" */
const char *lines_name(const struct line_place *p, char out[192]);
/* "cpu_seconds", "gil_wait_seconds" */
const char *line_class_name(unsigned int class);
void line_sum_cells(const struct line_sum *s, cell_put put, void *arg);
/* What is said of a line and of a stack, but for its frames: JSON, CSV and SQLite are made of it.
 */
void lines_cells(const struct lines *l, const struct line_row *r, cell_put put, void *arg);
void lines_stack_cells(const struct run *run, const struct line_stack_row *r, cell_put put,
		       void *arg);
/* As an array: outermost first, "FILE:LINE FUNCTION". */
void lines_frames_json(const struct line_list *list, struct json *j, const char *name);
/* wall: of the same tasks, exact. */
void lines_json(const struct lines *l, const struct run *run, struct value wall, struct json *j);
struct read_lines;
/* reads: of the same run. */
void lines_table(const struct lines *l, const struct read_lines *reads, struct value wall,
		 struct sink *s, bool colour);

#endif
