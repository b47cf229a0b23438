/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics.c - the table of all metrics, and how it is written out. */
#include "collector/metrics/metrics.h"

#include <string.h>

#define METRIC_FUNCTION_NUM(id) .num = metric_##id
#define METRIC_FUNCTION_TREE(id) .tree = metric_##id
#define METRIC(id, alias, unit, kind, source, rows, help)                                          \
	{#id, alias, unit, #source, rows, help, METRIC_##kind, METRIC_FUNCTION_##kind(id)},

const struct metric metric_table[] = {
#include "metrics.def"
};
#undef METRIC

const size_t metric_count = sizeof(metric_table) / sizeof(*metric_table);

void metrics_emit(const struct facts *f, struct json *j)
{
	const struct metric *m;
	struct value v;
	size_t i;

	for (i = 0; i < metric_count; i++) {
		m = &metric_table[i];
		if (m->kind == METRIC_TREE) {
			m->tree(f, m->id, j);
			continue;
		}
		v = m->num(f);
		emit_value(j, m->id, v);
		if (*m->alias)
			emit_value(j, m->alias, v);
	}
}

struct value metric_value(const struct facts *f, const char *id)
{
	size_t i;

	for (i = 0; i < metric_count; i++) {
		if (metric_table[i].kind == METRIC_NUM && !strcmp(metric_table[i].id, id))
			return metric_table[i].num(f);
	}
	return value_null();
}
