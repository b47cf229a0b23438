/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.h - one run with all data of its report, gathered but not yet printed.
 *
 * report_gather() fills it from the model and the metrics; report_release() frees what it holds.
 * The rest is shared by several outputs: rows and lists as JSON, folders, notes. Rows of tasks and
 * chunks follow the table in columns.c. One thread; nothing is kept between calls.
 */
#ifndef CREMA_COLLECTOR_REPORT_REPORT_H
#define CREMA_COLLECTOR_REPORT_REPORT_H

#include "collector/emit/emit_table.h"
#include "collector/metrics/metrics.h"
#include "collector/model/dropped.h"
#include "collector/runs/taskvine_log.h"
#include "collector/runs/timeline.h"
#include "collector/report/blocking.h"
#include "collector/report/coffea_report.h"
#include "collector/report/file_layers.h"
#include "collector/report/lines.h"
#include "collector/report/read_columns.h"
#include "collector/report/read_lines.h"
#include "collector/report/sections.h"
#include "collector/report/wall.h"
#include "common/rows.h"

struct findings;

/* Seconds and bytes of one part of a worker process. */
struct part {
	struct value cpu_seconds, storage_read_bytes, storage_write_bytes;
/* of tasks and of threads without a task; comm: Dask's own connections */
#define PART(name, ...) struct value name;
#include "counters.def"
};

/* process = tasks + unattributed + unseen, over the whole life of a worker */
struct balance {
	struct part tasks, unattributed, unseen, process;
	struct part children; /* ended and waited for; not included in the parts of the process */
};

/* One codec of one library over all workers and spans of the run. */
struct codec_side {
	union {
		struct {
#define CODEC_NUMBER(name, ...) struct value name;
#include "rows.def"
		};
		struct value number[CREMA_CODEC_NUMBERS];
	};
};
struct codec_sum {
	const char *codec, *library; /* library: the module */
	struct codec_side decompress, compress;
};

/* One server over all workers and spans of the run. */
struct server_sum {
	const char *server, *scheme;
	union {
		struct {
#define SERVER_NUMBER(name, ...) struct value name;
#include "rows.def"
		};
		struct value number[CREMA_SERVER_NUMBERS];
	};
	uint64_t latency[CREMA_LATENCY_BUCKETS];
};

struct totals_sum {
	union {
		struct {
#define TOTALS_NUMBER(name, ...) struct value name;
#include "rows.def"
		};
		struct value number[CREMA_TOTALS_NUMBERS];
	};
};

struct report {
	const struct run *run;
	const struct facts *facts;
	const struct coffea_report *coffea;  /* NULL: not requested */
	const struct taskvine_log *taskvine; /* the same */
	const struct wall *wall;	     /* the client's; NULL: no record */
	struct balance balance;		     /* of all workers of the run */
	uint64_t workers_with_notes;
	size_t silent;	     /* workers without a goodbye that fell silent */
	double silent_since; /* UTC: the first of them; losses are known until then */
	/* until the last messages of workers: a lower bound if some are silent */
	struct value records_lost;
	struct totals_sum totals;     /* TOTALS_NUMBERs of all workers of the run */
	ARRAY(struct file_sum) files; /* most read first */
	struct file_sum imports;      /* Python modules and libraries, combined */
	struct file_sum rest; /* not attributable to a single file, and files without a row */
	bool rest_unknown;    /* a worker had more spans than rows for their rest */
	ARRAY(struct codec_sum) codecs;	  /* most in bytes first */
	ARRAY(struct server_sum) servers; /* most read first */
	struct blocking *blocking;	  /* call sites of long waits */
	const struct findings *findings;  /* NULL: not collected yet */
	struct timeline timeline;
	struct lines lines;	  /* sampled stacks */
	struct sections sections; /* what tasks' own code has named */
	struct read_columns columns;
	struct read_lines read_lines;
	struct arena arena;
};

int report_gather(struct report *r, const struct run *run, const struct facts *facts);
/* Adds a row's numbers as contract/rows.def specifies; first: the sum is empty. */
void report_merge(struct value *sum, const struct value *v, const struct row_number *of, size_t n,
		  bool first);
int report_gather_servers(struct report *r);
void report_release(struct report *r);
void worker_balance(const struct worker *w, struct balance *b);

/* Lists and objects of a row, as the member `name`. */
void run_spans_json(const struct run *r, struct json *j, const char *name);
void task_classes_json(const struct classes *c, struct json *j, const char *name);
void chunk_lines_json(struct json *j, const char *name, const char *lines);
/* The sections of one task, as its record has them (task_fields.def); NULL: unknown. */
void chunk_sections_json(struct json *j, const char *name, const char *text);
void worker_texts_json(struct json *j, const char *name, const struct texts *t);
void worker_filesystems_json(const struct worker *w, struct json *j, const char *name);
void server_quantile_json(const struct server_sum *s, struct json *j, const char *name,
			  double share);
void server_buckets_json(const struct server_sum *s, struct json *j, const char *name);
void report_task_rows(const struct run *run, struct json *j);
void report_chunk_rows(const struct run *run, struct json *j);
void report_workers_json(const struct report *r, struct json *j);
void report_timeline_json(const struct report *r, struct json *j);
void report_servers_json(const struct report *r, struct json *j);
/* Datasets and sets of columns: what their counted chunks requested, read and used. */
void report_bytes_json(const struct report *r, struct json *j);
void report_completeness_json(const struct report *r, struct json *j);
/* What was refused and lost, each by emit_at_least(): a silent worker may have lost more. */
void report_losses_json(const struct report *r, struct json *j);

/* The time of the first silent worker's last message, as 12:34:56. Returns `text`. */
const char *report_silent_since(const struct report *r, char text[16]);
/* Notes for people and JSON: `say` gets each, one line. */
void report_notes(const struct report *r, void (*say)(void *arg, const char *line), void *arg);

/* The length of the common folder in the paths of these files; and the line that names it. */
size_t report_folder(const struct report *r, bool (*shown)(const struct file_sum *));
void report_folder_line(const struct report *r, bool (*shown)(const struct file_sum *), size_t n,
			struct sink *s);
/* Tables of the servers and of the bytes of datasets and sets of columns. */
void report_tables_servers(const struct report *r, struct sink *s, bool colour);
void report_tables_bytes(const struct report *r, struct sink *s, bool colour);

#endif
