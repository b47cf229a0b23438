/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * taskvine_log.h - matches TaskVine's transactions log with crema's measurements.
 *
 * TaskVine runs each task in a separate process, in a folder task.N below its worker's: N is the
 * task's number in the log. An execution (a task may be retried) is matched to the process that ran
 * in that folder and started during the execution. The log has sizes in "MB" of 1,048,576 bytes;
 * here they are in bytes. Lines that cannot be read are counted and skipped.
 */
#ifndef CREMA_COLLECTOR_RUNS_TASKVINE_LOG_H
#define CREMA_COLLECTOR_RUNS_TASKVINE_LOG_H

#include "collector/emit/emit_json.h"
#include "collector/runs/runs.h"

#define TASKVINE_NAME_BYTES 32
#define TASKVINE_LINE_BYTES 1024

struct taskvine_execution {
	uint64_t task;
	char category[TASKVINE_NAME_BYTES], result[TASKVINE_NAME_BYTES]; /* "": unknown */
	double ready, running, worker_start, worker_end, retrieved;	 /* UTC; NAN */
	struct value wall_seconds, input_seconds, output_seconds, input_bytes, output_bytes;
	const struct worker *worker; /* NULL: not measured, or not of a chunk */
};

struct taskvine_log {
	bool read;
	ARRAY(struct taskvine_execution) executions; /* in the order of their begin */
	uint64_t lines_bad;
	char line[TASKVINE_LINE_BYTES]; /* what is wrong with the file; "": nothing */
};

/* 0, or -errno with the line set. */
int taskvine_log_read(struct taskvine_log *log, const char *path);
/* Finds the processes of a run. */
void taskvine_log_match(struct taskvine_log *log, const struct run *run);
void taskvine_log_release(struct taskvine_log *log);

void taskvine_log_json(const struct taskvine_log *log, struct json *j);
void taskvine_log_table(const struct taskvine_log *log, struct sink *s, bool colour);

#endif
