/* SPDX-License-Identifier: BSD-3-Clause */
/* timeline.c - the JSON of a run's timeline. */
#include "collector/report/report.h"

static void put_series(const struct timeline *t, struct json *j, enum history_series s)
{
	struct value v;
	size_t i;

	emit_array(j, history_name(s));
	for (i = 0; i < t->bins; i++) {
		v = timeline_value(t, s, i);
		emit_value(j, NULL, history_is_class(s) ? value_seconds(v) : v);
	}
	emit_end(j);
}

static void put_kind(const struct timeline *t, struct json *j, const char *name, bool classes)
{
	int s;

	emit_object(j, name);
	for (s = 0; s < HISTORY_SERIES; s++) {
		if (history_is_class((enum history_series)s) == classes)
			put_series(t, j, (enum history_series)s);
	}
	emit_end(j);
}

static void put_averages(const struct timeline *t, struct json *j, const char *name,
			 const double *v)
{
	size_t i;

	emit_array(j, name);
	for (i = 0; i < t->bins; i++)
		emit_value(j, NULL, value_real(v[i]));
	emit_end(j);
}

void report_timeline_json(const struct report *r, struct json *j)
{
	const struct timeline *t = &r->timeline;

	emit_object(j, "timeline");
	emit_value(j, "start", value_real(t->start));
	emit_value(j, "stop", value_real(t->stop));
	emit_value(j, "bin_seconds", value_real(t->bin_seconds));
	emit_value(j, "resolution_seconds", value_real(t->resolution));
	put_kind(t, j, "layers", false);
	put_kind(t, j, "classes", true);
	put_averages(t, j, "workers", t->workers);
	put_averages(t, j, "running", t->running);
	emit_end(j);
}
