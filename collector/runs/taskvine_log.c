/* SPDX-License-Identifier: BSD-3-Clause */
/* taskvine_log.c - reads the transactions log and finds the measured processes. */
#include "collector/runs/taskvine_log.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"

#define MB 1048576.0
#define START_ERROR_SECONDS 0.02 /* /proc has a process's start to 10 ms */

/* Splits off the next word. */
static char *word(char **rest)
{
	char *w = *rest + strspn(*rest, " ");
	size_t n = strcspn(w, " \n");

	*rest = w + n + (w[n] != '\0');
	w[n] = '\0';
	return w;
}

static void keep(char *to, const char *text)
{
	snprintf(to, TASKVINE_NAME_BYTES, "%.*s", TASKVINE_NAME_BYTES - 1, text);
}

/* The number of {"name": [number, "unit"]}. */
static double measured(const json_t *o, const char *name)
{
	const json_t *v = json_array_get(json_object_get(o, name), 0);

	return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

static struct value in_bytes(double mb)
{
	return isnan(mb) || mb < 0 ? value_null() : value_uint((uint64_t)llround(mb * MB));
}

static struct taskvine_execution *last_of(struct taskvine_log *log, uint64_t task)
{
	size_t i;

	for (i = log->executions.n; i > 0; i--) {
		if (log->executions.v[i - 1].task == task)
			return &log->executions.v[i - 1];
	}
	return NULL;
}

static struct taskvine_execution *add(struct taskvine_log *log, uint64_t task)
{
	struct taskvine_execution *x = ARRAY_NEW(&log->executions);

	if (!x)
		return NULL;
	x->task = task;
	x->ready = x->running = x->worker_start = x->worker_end = x->retrieved = (double)NAN;
	return x;
}

static void take_resources(struct taskvine_execution *x, const char *text)
{
	json_t *o = json_loads(text, 0, NULL);

	if (!json_is_object(o)) {
		json_decref(o);
		return;
	}
	x->worker_start = measured(o, "time_worker_start");
	x->worker_end = measured(o, "time_worker_end");
	x->wall_seconds = value_real(measured(o, "wall_time"));
	x->input_seconds = value_real(measured(o, "time_input_mgr"));
	x->output_seconds = value_real(measured(o, "time_output_mgr"));
	x->input_bytes = in_bytes(measured(o, "size_input_mgr"));
	x->output_bytes = in_bytes(measured(o, "size_output_mgr"));
	json_decref(o);
}

/* TASK id STATE ... */
static int take_task(struct taskvine_log *log, double time, char *rest)
{
	uint64_t task = strtoull(word(&rest), NULL, 10);
	const char *state = word(&rest);
	struct taskvine_execution *x = last_of(log, task);
	char *resources;

	if (!strcmp(state, "READY") || !strcmp(state, "WAITING")) {
		if (!x || !isnan(x->running)) /* it ran before: a retry */
			x = add(log, task);
		if (!x)
			return -ENOMEM;
		x->ready = time;
		keep(x->category, word(&rest));
	} else if (!strcmp(state, "RUNNING") && x) {
		x->running = time;
	} else if (!strcmp(state, "RETRIEVED") && x) {
		x->retrieved = time;
		keep(x->result, word(&rest));
		resources = strrchr(rest, '{');
		if (resources)
			take_resources(x, resources);
	}
	return 0;
}

static int take_line(struct taskvine_log *log, char *line)
{
	char *rest = line, *end;
	const char *time = word(&rest);
	double microseconds = strtod(time, &end);

	if (*line == '#' || *line == '\0')
		return 0;
	if (end == time || *end) {
		log->lines_bad++;
		return 0;
	}
	word(&rest); /* the manager's process id */
	return strcmp(word(&rest), "TASK") ? 0 : take_task(log, microseconds / 1e6, rest);
}

int taskvine_log_read(struct taskvine_log *log, const char *path)
{
	FILE *f = fopen(path, "re");
	size_t size = 0;
	char *line = NULL;
	int rc = 0;

	memset(log, 0, sizeof(*log));
	if (!f) {
		rc = -errno;
		snprintf(log->line, sizeof(log->line), "cannot read '%.800s': %s", path,
			 log_error(rc));
		return rc;
	}
	while (!rc && getline(&line, &size, f) >= 0)
		rc = take_line(log, line);
	free(line);
	fclose(f);
	log->read = !rc;
	if (!rc && !log->executions.n)
		snprintf(log->line, sizeof(log->line),
			 "'%.800s' contains no tasks: it must be TaskVine's transactions log",
			 path);
	return rc;
}

void taskvine_log_release(struct taskvine_log *log)
{
	free(log->executions.v);
	memset(log, 0, sizeof(*log));
}

/* N from a folder .../task.N; false if there is none. */
static bool task_of(const struct worker *w, uint64_t *task)
{
	const char *slash = w->cwd ? strrchr(w->cwd, '/') : NULL;
	char *end;

	if (!slash || strncmp(slash, "/task.", 6) != 0 || !slash[6])
		return false;
	*task = strtoull(slash + 6, &end, 10);
	return !*end;
}

static bool fits(const struct taskvine_execution *x, const struct worker *w)
{
	double begin = isnan(x->worker_start) ? x->running : x->worker_start;

	return w->process_start >= begin - START_ERROR_SECONDS &&
	       (isnan(x->worker_end) || w->process_start <= x->worker_end);
}

void taskvine_log_match(struct taskvine_log *log, const struct run *run)
{
	uint64_t task;
	size_t i, k;

	for (i = 0; i < run->workers.n; i++) {
		if (!task_of(run->workers.v[i], &task))
			continue;
		for (k = log->executions.n; k > 0; k--) {
			if (log->executions.v[k - 1].task == task &&
			    fits(&log->executions.v[k - 1], run->workers.v[i])) {
				log->executions.v[k - 1].worker = run->workers.v[i];
				break;
			}
		}
	}
}
