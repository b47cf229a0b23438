/* SPDX-License-Identifier: BSD-3-Clause */
/* code_names.c - see code_names.h. */
#include "collector/report/code_names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/code_name.h"

#define DYNAMIC "<dynamic-code>"
#define LINE_BYTES 4096

static bool has_function(const json_t *functions, const char *function, uint64_t line)
{
	const json_t *row;
	size_t i;

	json_array_foreach(functions, i, row)
	{
		const char *name = json_string_value(json_array_get(row, 0));

		if (name && json_integer_value(json_array_get(row, 1)) <= (json_int_t)line &&
		    json_integer_value(json_array_get(row, 2)) >= (json_int_t)line &&
		    !strcmp(code_last_name(name), code_last_name(function)))
			return true;
	}
	return false;
}

/* NULL: in none, or in several. */
static const char *file_of(const json_t *code, const char *function, uint64_t line)
{
	const char *found = NULL;
	const json_t *file;
	size_t i;

	json_array_foreach(code, i, file)
	{
		const char *name = json_string_value(json_array_get(file, 0));

		if (!name || !has_function(json_array_get(file, 1), function, line))
			continue;
		if (found && strcmp(found, name))
			return NULL;
		found = name;
	}
	return found;
}

static void name_place(struct model *m, struct line_place *p, const json_t *code)
{
	const char *file;

	if (!p->file || !p->function || strcmp(p->file, DYNAMIC))
		return;
	file = file_of(code, p->function, p->line);
	if (file)
		p->file = model_text(m, (struct text){file, strlen(file)});
}

/* "FILE:LINE FUNCTION" */
static void name_line(struct model *m, const char **line, const json_t *code)
{
	char text[LINE_BYTES], *function;
	const char *file;
	uint64_t number;
	int n;

	if (!*line || strncmp(*line, DYNAMIC ":", sizeof(DYNAMIC)))
		return;
	number = strtoull(*line + sizeof(DYNAMIC), &function, 10);
	if (*function != ' ')
		return;
	file = file_of(code, function + 1, number);
	n = file ? snprintf(text, sizeof(text), "%s:%" PRIu64 "%s", file, number, function) : -1;
	if (n > 0 && (size_t)n < sizeof(text))
		*line = model_text(m, (struct text){text, (size_t)n});
}

/* What tasks that run are doing. */
static void name_doing(struct model *m, struct worker *w, const json_t *code)
{
	const char *line;

	for (size_t i = 0; i < w->doing.n; i++) {
		line = w->doing.v[i].line;
		name_line(m, &line, code);
		if (line != w->doing.v[i].line)
			snprintf(w->doing.v[i].line, sizeof(w->doing.v[i].line), "%s", line);
	}
}

int code_names_set(struct model *m, const json_t *code)
{
	struct line_place *p;
	size_t i, k, at = 0;

	while ((p = table_next(&m->lines.place_table, &at)))
		name_place(m, p, code);
	for (i = 0; i < m->columns.n; i++)
		for (k = 0; k < CREMA_COLUMN_LINES; k++)
			name_line(m, &m->columns.v[i]->line[k], code);
	for (i = 0; i < m->files.n; i++)
		for (k = 0; k < m->files.v[i]->opened.n; k++)
			name_line(m, &m->files.v[i]->opened.v[k].line, code);
	for (i = 0; i < m->workers.n; i++)
		name_doing(m, m->workers.v[i], code);
	return m->error;
}
