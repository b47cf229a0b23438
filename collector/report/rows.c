/* SPDX-License-Identifier: BSD-3-Clause */
/* rows.c - tasks and chunks as JSON rows. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/report/columns.h"

/* Columns with their names as JSON has them. */
struct named {
	const struct column *column;
	size_t n;
	struct json_name *name;
};

static int named_init(struct named *named, const struct column *column, size_t n)
{
	size_t i;

	*named = (struct named){column, n, calloc(n, sizeof(*named->name))};
	for (i = 0; named->name && i < n; i++)
		json_name_init(&named->name[i], column[i].name);
	return named->name ? 0 : -ENOMEM;
}

static void put_columns(const struct named *named, const struct attempt *a, const struct classes *c,
			struct json *j)
{
	size_t i;

	for (i = 0; i < named->n; i++)
		emit_ready(j, &named->name[i], column_value(&named->column[i], a, c));
}

/* Lists the unknown classes, which count as 0 in unclassified_seconds. */
void task_classes_json(const struct classes *c, struct json *j, const char *name)
{
	unsigned int i;

	emit_array(j, name);
	for (i = 0; i < CREMA_TIMES; i++) {
		if ((c->unknown >> i) & 1)
			emit_value(j, NULL, value_text(class_name(i)));
	}
	emit_end(j);
}

void chunk_lines_json(struct json *j, const char *name, const char *lines)
{
	size_t n;

	if (!lines) {
		emit_value(j, name, value_null());
		return;
	}
	emit_array(j, name);
	while (*lines) {
		n = strcspn(lines, "\n");
		if (n)
			emit_text(j, NULL, lines, n);
		lines += n + (lines[n] == '\n');
	}
	emit_end(j);
}

void chunk_sections_json(struct json *j, const char *name, const char *text)
{
	unsigned long long wall_ns;
	unsigned int calls;
	size_t n, most;
	char kind;
	int used;

	if (!text) {
		emit_value(j, name, value_null());
		return;
	}
	emit_array(j, name);
	text += strcspn(text, " ");
	while (sscanf(text, " %c %u %llu %zu%n", &kind, &calls, &wall_ns, &n, &used) == 4 &&
	       text[used] == ' ') {
		text += used + 1;
		most = strlen(text);
		n = n < most ? n : most;
		emit_object(j, NULL);
		emit_text(j, "section_name", text, n);
		emit_value(j, "thread", value_text(kind == 'p' ? "pool" : "task"));
		emit_value(j, "source", value_text(kind == 'f' ? "roastcoffea" : "crema"));
		emit_value(j, "calls", value_uint(calls));
		emit_value(j, "time_delta", value_seconds(value_uint(wall_ns)));
		emit_end(j);
		text += n;
	}
	emit_end(j);
}

static void put_task(const struct named *task, const struct attempt *a, struct classes *c,
		     struct json *j)
{
	attempt_classes(a, c);
	put_columns(task, a, c, j);
	task_classes_json(c, j, "unclassified_includes");
}

void report_task_rows(const struct run *run, struct json *j)
{
	struct named task;
	struct classes c;
	size_t i;

	if (named_init(&task, task_columns, task_column_count))
		j->sink->error = -ENOMEM;
	emit_array(j, "tasks");
	for (i = 0; i < run->attempts.n && !j->sink->error; i++) {
		emit_object(j, NULL);
		put_task(&task, run->attempts.v[i], &c, j);
		emit_end(j);
	}
	emit_end(j);
	free(task.name);
}

void report_chunk_rows(const struct run *run, struct json *j)
{
	struct named task, chunk;
	const struct attempt *a;
	struct classes c;
	size_t i;

	if (named_init(&task, task_columns, task_column_count) |
	    named_init(&chunk, chunk_columns, chunk_column_count))
		j->sink->error = -ENOMEM;
	emit_array(j, "chunks");
	for (i = 0; i < run->attempts.n && !j->sink->error; i++) {
		a = run->attempts.v[i];
		if (!attempt_is_chunk(a))
			continue;
		emit_object(j, NULL);
		put_task(&task, a, &c, j);
		put_columns(&chunk, a, &c, j);
		chunk_lines_json(j, "columns", a->columns);
		chunk_sections_json(j, "sections", c.detail.sections);
		emit_end(j);
	}
	emit_end(j);
	free(task.name);
	free(chunk.name);
}
