/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lines.h - CPU and waits of a run's tasks by line of Python, estimated from samples.
 *
 * Each sample stands for the time since the previous one, so sums are seconds. The time of a
 * runnable thread is divided into computing and waiting for a core in the ratio of its worker's
 * clocks. A share p of n samples has an error of 1.96 sqrt(p (1 - p) / n): lines_error(). The
 * numbers cover the threads that tasks run in; `pool` covers the others that worked for them.
 *
 * Bytes are sampled by the byte (shim/count/byte_sample.h): an estimate of what calls from that
 * stack read and received, with line_bytes_error(). A pool thread's stack continues with the one
 * that handed it the work, so a line's bytes include what other threads read for it.
 *
 * Large allocations are exact for workers that recorded them (contract/rows.def, LINES_LARGE). A
 * line's peak is the sum over workers of what it held there when the tasks of this run together
 * held most: each worker at its own time.
 *
 * While threads wait for the interpreter lock, the stack that holds it gets their time as held_s,
 * in any thread. lines_unheld() is the rest of these waits: the lock changed hands while the agent
 * read it.
 *
 * Waits longer than the threshold of long waits are exact, of all threads.
 */
#ifndef CREMA_COLLECTOR_REPORT_LINES_H
#define CREMA_COLLECTOR_REPORT_LINES_H

#include "collector/emit/emit_json.h"
#include "collector/emit/emit_table.h"
#include "collector/runs/runs.h"

#define LINES_ROWS 100	 /* in JSON; the rest is counted */
#define LINES_STACKS 500 /* stacks in JSON */
#define LINES_STATES 6

/* Seconds by class: row_times[], then what could not be determined. */
struct line_sum {
	uint64_t samples, class_samples[LINE_CLASSES_TOLD];
	double seconds, class_s[LINE_CLASSES_TOLD];
	/* Of others that waited for the interpreter lock while it was held here. */
	uint64_t held_samples;
	double held_s;
	/* Read and received, by enum crema_lines_byte. */
	uint64_t byte_samples[CREMA_LINES_BYTES], bytes[CREMA_LINES_BYTES];
	double byte_variance[CREMA_LINES_BYTES];
	/* Long waits. */
	uint64_t waits[CREMA_TIMES], waited_ns[CREMA_TIMES];
	/* Large allocations, by enum crema_lines_large; known: a worker recorded them. */
	bool large_known;
	int64_t large[CREMA_LINES_LARGE];
};

/* Long waits of all classes, or their parts. */
struct line_waits {
	uint64_t waits, ns;
};

/* The innermost line of user code. */
struct line_row {
	const struct line_place *place; /* of any of its functions; NULL: not user code */
	struct line_sum sum;
	const struct line_list *most; /* the most frequent stack below it */
	uint64_t most_samples;
};

/* One stack of a kind of task and dataset. */
struct line_stack_row {
	const char *prefix, *why;
	const char *dataset; /* NULL: none, or unknown when it was sampled */
	bool pool, outside;  /* outside: of a thread without a task that held the lock */
	const struct line_list *list;
	struct line_sum sum;
	double share; /* the largest, of the time, of the bytes of a kind, of long waits, or of
			 memory */
	ARRAY(const struct line_stack *) parts; /* of workers; one may have several */
};

/* The share of time that a worker's threads ran while they were runnable. */
struct line_ran {
	uint64_t cpu_ns, runqueue_ns;
};

struct lines {
	ARRAY(struct line_row *) rows; /* most time first; of own threads */
	ARRAY(struct line_stack_row *)
	stacks; /* all threads; largest share of time or bytes first */
	struct table row_table, stack_table;
	struct arena arena;
	struct line_sum all, pool; /* of own threads, of pool threads */
	struct line_ran *ran;	   /* by the worker's index in the model */
	uint64_t held_samples;
	double held_s;		     /* of all rows */
	uint64_t cut;		     /* samples of `all` and `pool` that lack inner frames */
	uint64_t torn, none, full;   /* samples without a stack */
	struct line_waits stackless; /* long waits without a stack */
	/* Of the run's workers. */
	struct {
		const char *state;
		size_t workers;
	} state[LINES_STATES];
	size_t states,
		unknown; /* unknown: of workers whose agents did not report it, or without room */
	/* Workers that recorded large allocations, and from which size on (the smallest). */
	size_t large_workers;
	uint64_t large_bytes;
	double large_refused, large_refused_bytes; /* in the workers' whole lives: in no line */
	uint64_t agent_cpu_ns;
	bool beyond, clockless; /* rows were dropped; computing and waiting are inseparable */
};

int lines_gather(struct lines *l, const struct run *run);
void lines_release(struct lines *l);
void line_sum_add(struct line_sum *to, const struct line_sum *s);
struct line_waits line_sum_waits(const struct line_sum *s);
/* Its bytes and long waits, without times. */
struct line_sum line_sum_bytes(const struct line_sum *s);
/* Adds one worker's part of a stack. */
void lines_add_part(const struct lines *l, const struct line_stack *part, struct line_sum *to);
/* Long waits of the run's workers that are in no row, of other runs too; false: unknown. */
bool lines_waits_missing(const struct lines *l, const struct run *run, struct line_waits *out);
/* Half the width of the 95 % interval of a share of n samples. */
double lines_error(double share, uint64_t samples);
/* Half the width of the 95 % interval of its bytes: at most that, as samples of large reads vary
 * less. */
double line_bytes_error(const struct line_sum *s, enum crema_lines_byte kind);
/* Its share of the time of own threads. */
double lines_share(const struct lines *l, const struct line_sum *s);
/* The line with most time of a class (LINE_CLASSES_TOLD: of all classes) and its share; NULL: none,
 * or it has fewer samples than `least`. */
const struct line_row *lines_hottest(const struct lines *l, unsigned int class, uint64_t least,
				     double *share);
/* The line that held the interpreter lock for most of the time that others waited for it, and its
 * share, as lines_hottest(). */
const struct line_row *lines_holder(const struct lines *l, uint64_t least, double *share);
/* Seconds of waits for it with an unknown holder. */
double lines_unheld(const struct lines *l);
/* "own", "pool", or "outside" of tasks */
const char *line_thread_name(const struct line_stack_row *r);
/* The first place in user code from `from` outwards; its depth, or NULL: none. */
uint32_t lines_user_at(const struct line_list *list, uint32_t from);
const struct line_place *lines_user_place(const struct line_list *list, uint32_t from);
/* A line is the same in any function object. */
bool lines_same(const struct line_place *a, const struct line_place *b);
/* "FILE:LINE FUNCTION" */
#define LINES_TEXT 512
const char *lines_text(const struct line_place *p, char out[LINES_TEXT]);
/* "analysis.py:42 process" */
const char *lines_name(const struct line_place *p, char out[192]);
/* "cpu_seconds", "gil_wait_seconds" */
const char *line_class_name(unsigned int class);
void line_sum_cells(const struct line_sum *s, cell_put put, void *arg);
/* The columns of a line and of a stack, without its frames, for JSON, CSV and SQLite. */
void lines_cells(const struct lines *l, const struct line_row *r, cell_put put, void *arg);
void lines_stack_cells(const struct run *run, const struct line_stack_row *r, cell_put put,
		       void *arg);
/* As an array: outermost first, "FILE:LINE FUNCTION". */
void lines_frames_json(const struct line_list *list, struct json *j, const char *name);
struct tally;
/* exact: of the same tasks. */
void lines_json(const struct lines *l, const struct run *run, const struct tally *exact,
		struct json *j);
/* NULL value: unknown. */
struct value line_large(const struct line_sum *s, enum crema_lines_large number);
/* The line with most bytes of that number in one worker, or NULL; *prefix: of the tasks with most
 * of it. */
const struct line_place *lines_keeper(const struct lines *l, const struct worker *w, int64_t *bytes,
				      const char **prefix);
struct grid;
/* As lines_name(), without the function in a narrow table. */
void line_place_cell(struct grid *g, const struct line_place *p);
void lines_large_table(const struct lines *l, struct sink *s, bool colour);
struct read_lines;
/* reads: of the same run. */
void lines_table(const struct lines *l, const struct read_lines *reads, const struct tally *exact,
		 struct sink *s, bool colour);

#endif
