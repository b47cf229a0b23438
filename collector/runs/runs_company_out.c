/* SPDX-License-Identifier: BSD-3-Clause */
/* runs_company_out.c - sentences about runs and calls that cannot be separated. */
#include <stdio.h>

#include "collector/emit/emit_json.h"
#include "collector/emit/emit_text.h"
#include "collector/runs/runs.h"

const char *run_ids_text(char *line, size_t size, const char ids[][RUN_ID_BYTES], size_t n)
{
	size_t i, at = 0;

	*line = '\0';
	for (i = 0; i < n && i < RUN_OTHERS; i++)
		at += (size_t)snprintf(line + at, size - at, "%s%s", i ? ", " : "", ids[i]);
	if (n > RUN_OTHERS)
		snprintf(line + at, size - at, ", ...");
	return line;
}

void run_company_say(const struct run *r, void (*say)(void *arg, const char *sentence), void *arg)
{
	const struct run_others *o = &r->others;
	size_t n = r->plain ? 0 : run_concurrent(r);
	char ids[(RUN_ID_BYTES + 2) * (RUN_OTHERS + 1)], line[400];

	run_ids_text(ids, sizeof(ids), o->source_ids, o->sources);
	if (n) {
		snprintf(line, sizeof(line),
			 "%zu other run%s on its workers meanwhile: numbers of whole workers and "
			 "hosts (transfers, spilling, memory, network) include all of them",
			 n, plural(n));
		say(arg, line);
	}
	if (*o->lent_to) {
		snprintf(line, sizeof(line),
			 "tasks that use its results ran in the span of %s and are counted there: "
			 "Dask does this while the client keeps that run's result",
			 o->lent_to);
		say(arg, line);
	}
	if (o->later || o->sources) {
		snprintf(line, sizeof(line),
			 o->later ? "it contains several calls: tasks of later calls, whose other "
				    "tasks are in %s, ran in its span, as Dask does while the "
				    "client keeps a result"
				  : "it uses results of %s: the tasks that made them ran, and are "
				    "counted, there",
			 ids);
		say(arg, line);
	}
	if (r->again) {
		snprintf(line, sizeof(line),
			 "it contains several calls: %zu task%s ran again for a later call with "
			 "equal keys, in the same span, as Dask does while the client keeps a "
			 "result; the earlier attempts count as recomputed",
			 r->again, plural(r->again));
		say(arg, line);
	}
}

static void emit_sentence(void *json, const char *sentence)
{
	emit_value(json, NULL, value_text(sentence));
}

void run_company_json(const struct run *r, struct json *j)
{
	emit_array(j, "company");
	run_company_say(r, emit_sentence, j);
	emit_end(j);
}
