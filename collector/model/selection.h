/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * selection.h - the filter of a model that is read for some runs (runs/read_runs.h).
 *
 * It decides which parts of a frame are kept. Without a filter, all are.
 *
 * Each pass reads all data about a worker's whole life (totals, clocks, losses, its end). Only the
 * start of its first task and the time that it had tasks are then unknown. Of the totals outside
 * the runs' times, the first and the last of each segment are kept as points in time.
 */
#ifndef CREMA_COLLECTOR_MODEL_SELECTION_H
#define CREMA_COLLECTOR_MODEL_SELECTION_H

#include "collector/model/model.h"
#include "common/ranges.h"

/* Samples and totals this long before and after the run are also kept, and so is data that may
 * explain why a run is stalled. */
#define SELECTION_MARGIN_NS UINT64_C(60000000000)
#define SELECTION_LATEST_NS UINT64_C(900000000000)

enum selection_pass { SELECTION_SURVEY, SELECTION_RUNS, SELECTION_BATCH, SELECTION_FOOTER };

/* The time range of a worker's samples in a segment, by its own clock; from 0: one has no time. */
struct sampled {
	const struct worker *worker;
	uint64_t from_boot_ns, to_boot_ns;
};

struct selection_file {
	char *path;
	uint16_t segment;
	bool nameless;	    /* has tasks without a span */
	uint64_t frames;    /* that the survey could read */
	bool footer;	    /* read from its footer, as are the members below */
	struct texts spans; /* named by its records and rows */
	ARRAY(struct sampled) sampled;
};

/* What the survey found about a span. */
struct seen_span {
	uint64_t span;		      /* the address of its name */
	uint64_t begun, ended;	      /* records */
	size_t first_file, last_file; /* that hold some of it */
	size_t run, batch;	      /* batch 0: none */
};

struct selection {
	enum selection_pass pass;
	struct arena arena; /* of the survey's tables */
	struct table earliest, kept, seen;
	ARRAY(struct selection_file) files; /* in reading order */
	size_t batch;			    /* being read */
	struct arena wanted_arena;
	struct table wanted; /* spans of the runs in it */
	struct ranges times; /* around these runs, UTC nanoseconds */
	struct table clocks; /* of workers, from the survey: to place samples in time */
	uint64_t block_from_ns, block_to_ns; /* the client's; 0: unknown */
	bool counted;			     /* the footer has already counted what is fed now */
	bool no_tasks;			     /* what is fed now has no task of a selected run */
	bool footers_off;		     /* a footer was invalid after all */
	bool all;			     /* a selected run may have tasks in any segment */
	uint64_t taken;			     /* records and rows that name spans of selected runs */
	struct table skipped;		     /* paths of segments without data of the runs */
};

/* Starts the reading over. */
void selection_restart(struct selection *s);
/* NULL: the span has no records there. */
struct seen_span *selection_span(struct selection *s, const char *span);
/* Whether the second reading needs only the footer of that segment. */
bool selection_skips(const struct selection *s, const char *path);
/* Marks it so: 0 or -ENOMEM. */
int selection_skip(struct selection *s, const char *path);
/* Fed from the footer: how many of the span's records begin and end tasks, and when the worker's
 * last task of it ended. 0 or -ENOMEM. */
int selection_counted(struct selection *s, const char *span, uint64_t begun, uint64_t ended);
int selection_ended(struct selection *s, const char *span, const struct worker *w, uint64_t end_ns);
/* The latter: false if it has none. */
bool selection_end(const struct selection *s, const char *span, const struct worker *w,
		   uint64_t *end_ns);
/* Part of feed_totals(): keeps them as a point in time. 0 or -ENOMEM. */
int selection_history(struct model *m, struct worker *w, const struct totals *t,
		      uint64_t snapshot_ns);
bool selection_takes_stack(const struct selection *s, struct text span);
/* Part of model_read_dir(): starts the next file. 0 or -ENOMEM. */
int selection_file(struct selection *s, const char *path, uint16_t segment);
/* Records how many frames it had. */
void selection_frames(struct selection *s, uint64_t frames);

/* Parts of model_feed(): whether to keep the record, the sample of that time or the message.
 * `known`: the attempt is known. */
/* The bytes of a message if it is a task's, and what is fed has none to take; else 0. */
size_t selection_skips_task(const struct selection *s, const unsigned char *message, size_t n);
bool selection_takes_task(struct model *m, struct worker *w, const struct task_record *r,
			  bool known);
/* Keeps only what identifies and counts runs; with `s` NULL, everything. */
void selection_slim(const struct selection *s, struct task_record *r);
/* Part of runs_build(): whether the survey has seen both spans in one run; true without a
 * survey. */
bool selection_joins(const struct model *m, const char *span, const char *other);
bool selection_wants(const struct selection *s, struct text span);
/* Makes the second reading keep that span for the run; and returns a copy of a text with the same
 * lifetime. -ENOMEM, NULL: no memory. */
int selection_want(struct selection *s, const void *run, const char *span);
const char *selection_keep(struct selection *s, const char *text);
bool selection_takes_time(const struct model *m, const struct worker *w, uint64_t boot_ns);
/* Whether some of the time range may be taken. */
bool selection_takes_times(const struct model *m, const struct worker *w, uint64_t from_boot_ns,
			   uint64_t to_boot_ns);
bool selection_takes_message(const struct model *m, struct worker *w, uint64_t type,
			     const msgpack_object *map);

#endif
