/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * list.h - the list of runs: one line for each, made while its attempts are in memory.
 *
 * report_list_take() is a visitor of runs_read_each(); the lines are complete when that returns.
 */
#ifndef CREMA_COLLECTOR_PRINT_LIST_H
#define CREMA_COLLECTOR_PRINT_LIST_H

#include "collector/emit/emit_json.h"
#include "collector/runs/run_state.h"
#include "common/run_name.h"

struct report_list_line {
	char id[RUN_ID_BYTES];
	char name[RUN_NAME_BYTES + 1]; /* "": none */
	const char *kind;
	double start;
	struct value wall_time, num_tasks, num_attempts, num_chunks, total_events;
	const char *state;
	uint64_t running, chunk_attempts;
};

struct report_list {
	struct report_list_line *v; /* the caller frees it */
	size_t n;
};

int report_list_take(void *list, const struct run *r, size_t at, size_t n);
void report_list_json(const struct report_list *list, const struct model *m, struct sink *s);
void report_list_text(const struct report_list *list, const struct model *m, struct sink *s,
		      bool colour);

#endif
