/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * selection.h - the filter of a model that is read for some runs (runs/read_runs.h): it decides
 * which parts of a frame are kept. Without a filter, all are.
 *
 * Data of a worker's whole life (totals, clocks, losses, its end) is read in full by each pass;
 * only the start of its first task and the time that it had tasks are then unknown. Of totals
 * outside the runs' times, the first and the last of each segment count over time.
 */
#ifndef CREMA_COLLECTOR_MODEL_SELECTION_H
#define CREMA_COLLECTOR_MODEL_SELECTION_H

#include "collector/model/model.h"
#include "common/ranges.h"

/* Samples and totals this long before and after the run are kept, too, and data that may explain
 * why a run is stalled. */
#define SELECTION_MARGIN_NS UINT64_C(60000000000)
#define SELECTION_LATEST_NS UINT64_C(900000000000)

enum selection_pass { SELECTION_SURVEY, SELECTION_RUNS, SELECTION_BATCH, SELECTION_FOOTER };

/* When a worker's samples in a segment are of, by its own clock; from 0: one has no time. */
struct sampled {
	const struct worker *worker;
	uint64_t from_boot_ns, to_boot_ns;
};

struct selection_file {
	char *path;
	uint16_t segment;
	bool nameless;	    /* has tasks without a span */
	uint64_t frames;    /* that the survey could read */
	bool footer;	    /* it was read by its footer, which the others are of */
	struct texts spans; /* that its records and rows name */
	ARRAY(struct sampled) sampled;
};

/* What the survey knows of a span. */
struct seen_span {
	uint64_t span;		      /* the name's address */
	uint64_t begun, ended;	      /* records */
	size_t first_file, last_file; /* that hold some */
	size_t run, batch;	      /* batch 0: none */
};

struct selection {
	enum selection_pass pass;
	struct arena arena; /* of the survey's tables */
	struct table earliest, kept, seen;
	ARRAY(struct selection_file) files; /* as they were read */
	size_t batch;			    /* that is read now */
	struct arena wanted_arena;
	struct table wanted; /* spans of the runs that are */
	struct ranges times; /* around these runs, UTC nanoseconds */
	struct table clocks; /* of workers, as the survey knows them: when samples are of */
	uint64_t block_from_ns, block_to_ns; /* the client's; 0: not known */
	bool counted;			     /* what is fed now was counted by its footer */
	bool footers_off;		     /* a footer was invalid after all */
	bool all;			     /* a selected run may have tasks in any segment */
	struct table skipped;		     /* paths of segments that have nothing of the runs */
};

/* The reading starts over. */
void selection_restart(struct selection *s);
/* NULL: the span has no records of its own there. */
struct seen_span *selection_span(struct selection *s, const char *span);
/* Whether the second reading needs nothing but the footer of that segment. */
bool selection_skips(const struct selection *s, const char *path);
/* It does: 0 or -ENOMEM. */
int selection_skip(struct selection *s, const char *path);
/* Parts of the footer: how many of the span's records begin and end tasks; when the worker's last
 * task of it ended. 0 or -ENOMEM. */
int selection_counted(struct selection *s, const char *span, uint64_t begun, uint64_t ended);
int selection_ended(struct selection *s, const char *span, const struct worker *w, uint64_t end_ns);
/* That: false if it has none. */
bool selection_end(const struct selection *s, const char *span, const struct worker *w,
		   uint64_t *end_ns);
/* Part of feed_totals(): takes them as a point in time. 0 or -ENOMEM. */
int selection_history(struct model *m, struct worker *w, const struct totals *t,
		      uint64_t snapshot_ns);
bool selection_takes_stack(const struct selection *s, struct text span);
/* Part of model_read_dir(): the next file. 0 or -ENOMEM. */
int selection_file(struct selection *s, const char *path, uint16_t segment);
/* How many frames it had. */
void selection_frames(struct selection *s, uint64_t frames);

/* Parts of model_feed(): whether the record, the sample of that time or the message is to be
 * kept. `known`: the attempt is. */
bool selection_takes_task(struct model *m, struct worker *w, const struct task_record *r,
			  bool known);
/* Leaves what runs are made of and counted by; `s` may be NULL: then everything. */
void selection_slim(const struct selection *s, struct task_record *r);
/* Part of runs_build(): whether the survey has seen both spans in one run; true without one. */
bool selection_joins(const struct model *m, const char *span, const char *other);
bool selection_wants(const struct selection *s, struct text span);
/* The second reading is to keep that span for the run; and a copy of a text that lives as long.
 * -ENOMEM, NULL: no memory. */
int selection_want(struct selection *s, const void *run, const char *span);
const char *selection_keep(struct selection *s, const char *text);
bool selection_takes_time(const struct model *m, const struct worker *w, uint64_t boot_ns);
bool selection_takes_message(const struct model *m, struct worker *w, uint64_t type,
			     const msgpack_object *map);

#endif
