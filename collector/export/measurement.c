/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measurement.c - the run as a folder in the layout of roastcoffea 0.1.2, for its load_measurement,
 * tables and plots: metrics.json, start_end_time.txt, config.json, metadata.json.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "collector/export/export.h"
#include "collector/export/measurement_parts.h"
#include "collector/export/draft.h"
#include "collector/report/report.h"
#include "common/clock.h"
#include "common/dirs.h"
#include "common/log.h"
#include "version.h"

/* Theirs and a metric of ours have the name: the measurement's own has the members of both. */
#define BOTH "per_dataset"

void measurement_put(struct json *j, const char *name, struct value v)
{
	if (v.type != VALUE_NULL)
		emit_value(j, name, v);
}

static void put_repr(struct buf *out, const char *text)
{
	const char *c;
	char hex[8];

	buf_add(out, "'", 1);
	for (c = text; *c; c++) {
		if (*c == '\'' || *c == '\\')
			buf_add(out, "\\", 1);
		if ((unsigned char)*c >= 0x20 && *c != 0x7f) {
			buf_add(out, c, 1);
		} else {
			snprintf(hex, sizeof(hex), "\\x%02x", (unsigned char)*c);
			buf_add(out, hex, 4);
		}
	}
	buf_add(out, "'", 1);
}

void measurement_tuple(struct buf *out, const char *const *text, size_t texts,
		       const int64_t *number, size_t numbers)
{
	char digits[24];
	size_t i;

	buf_clear(out);
	buf_add(out, "(", 1);
	for (i = 0; i < texts + numbers; i++) {
		if (i)
			buf_add(out, ", ", 2);
		if (i < texts) {
			put_repr(out, text[i]);
			continue;
		}
		snprintf(digits, sizeof(digits), "%lld", (long long)number[i - texts]);
		buf_add(out, digits, strlen(digits));
	}
	buf_add(out, ")", 2); /* with the end of the text */
}

static void put_metrics(const struct report *r, struct json *j)
{
	const struct metric *m;
	struct value v;
	size_t i;

	emit_object(j, NULL);
	for (i = 0; i < metric_count; i++) {
		m = &metric_table[i];
		if (m->kind == METRIC_TREE) {
			if (strcmp(m->id, BOTH))
				m->tree(r->facts, m->id, j);
			continue;
		}
		v = m->num(r->facts);
		measurement_put(j, m->id, v);
		if (*m->alias)
			measurement_put(j, m->alias, v);
	}
	measurement_chunks(r, j);
	measurement_files(r, j);
	measurement_sections(&r->sections, j);
	measurement_spans(r->facts, j);
	measurement_tracking(r->facts, j);
	emit_end(j);
}

static void put_config(const struct report *r, struct json *j)
{
	const struct run *run = r->run;
	const struct worker *w;
	size_t i;

	emit_object(j, NULL);
	emit_value(j, "run", value_text(run->id));
	run_spans_json(run, j, "spans");
	emit_array(j, "workers");
	for (i = 0; i < run->workers.n; i++) {
		w = run->workers.v[i];
		emit_object(j, NULL);
		emit_value(j, "worker", value_text(w->label));
		emit_value(j, "host", value_text(w->host));
		emit_value(j, "nthreads", w->nthreads);
		emit_value(j, "memory_limit_bytes", w->memory_limit_bytes);
		emit_value(j, "python", value_text(w->python));
		emit_value(j, "dask", value_text(w->dask));
		emit_value(j, "coffea", value_text(w->coffea));
		emit_value(j, "uproot", value_text(w->uproot));
		emit_end(j);
	}
	emit_end(j);
	emit_end(j);
}

static void put_metadata(const struct report *r, struct json *j)
{
	char text[40];

	emit_object(j, NULL);
	emit_value(j, "timestamp",
		   value_text(iso_time((double)clock_real_ns() / 1e9, text, sizeof(text))));
	emit_value(j, "elapsed_time_seconds", metric_wall_time(r->facts));
	emit_value(j, "format", value_text("roastcoffea_measurement_v1"));
	emit_value(j, "written_by", value_text("crema " CREMA_VERSION));
	emit_end(j);
}

/* Times are UTC, seconds since 1970: what began and ended are the first and last task edge. */
static void put_times(const struct report *r, struct sink *s)
{
	sink_printf(s, "%.6f,%.6f\n", r->run->start, r->run->stop);
}

static int write_file(const struct report *r, const char *dir, const char *name,
		      void (*fill)(const struct report *r, struct json *j), struct buf *why)
{
	char path[PATH_MAX];
	struct draft d;
	struct json j;

	if (dirs_join(path, sizeof(path), dir, name))
		return report_fail(why, -ENAMETOOLONG, "cannot write '%s' in '%s': %s", name, dir,
				   log_error(-ENAMETOOLONG));
	draft_init(&d, path);
	if (fill) {
		emit_init(&j, &d.sink);
		fill(r, &j);
	} else {
		put_times(r, &d.sink);
	}
	return draft_end(&d, why);
}

int export_measurement(const struct report *r, const char *path, struct buf *why)
{
	int rc = draft_folder("--measurement", path, why);

	if (rc)
		return rc;
	rc = write_file(r, path, "metrics.json", put_metrics, why);
	if (!rc)
		rc = write_file(r, path, "start_end_time.txt", NULL, why);
	if (!rc)
		rc = write_file(r, path, "config.json", put_config, why);
	if (!rc)
		rc = write_file(r, path, "metadata.json", put_metadata, why);
	return rc;
}
