/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics_units.c - the units of metrics.def, for people and as Prometheus' base units.
 *
 * Prometheus requires base units, with their names at the end: one suffix replaces the words of the
 * id that name the unit. chunk_wall_mean_seconds does not change, read_rate_mbs becomes
 * read_rate_bytes_per_second, cpu_utilization_percent becomes cpu_utilization_ratio. Ids that
 * differ only in the unit are one gauge.
 */
#include "collector/metrics/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct metric_unit units[] = {
	{"", AS_IS, "", 1, ""},
	{"bool", AS_YES, "", 1, ""},
	{"events", AS_COUNT, "", 1, ""},
	{"bytes", AS_BYTES, "_bytes", 1, " bytes "},
	{"MiB", AS_MIB, "_bytes", 1048576, " mb "},
	{"s", AS_SECONDS, "_seconds", 1, " seconds "},
	{"%", AS_PERCENT, "_ratio", 0.01, " percent percentage ratio "},
	{"ratio", AS_SHARE, "_ratio", 1, " ratio "},
	{"x", AS_TIMES, "_ratio", 1, " ratio factor "},
	{"MB/s", AS_MBS, "_bytes_per_second", 1e6, " mbs "},
	{"Gbit/s", AS_GBPS, "_bytes_per_second", 1e9 / 8, " gbps "},
	{"kHz", AS_KHZ, "_hertz", 1e3, " khz "},
	{"Hz/core", AS_HZ, "_hertz", 1, " hz "},
	{"kHz/core", AS_KHZ, "_hertz", 1e3, " khz "},
};

const struct metric_unit *metric_unit(const char *unit)
{
	size_t i;

	for (i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (!strcmp(units[i].unit, unit))
			return &units[i];
	}
	return NULL;
}

static bool has_word(const char *words, const char *word, size_t n)
{
	char look[METRIC_PROMETHEUS_BYTES];

	snprintf(look, sizeof(look), " %.*s ", (int)n, word);
	return strstr(words, look) != NULL;
}

const char *metric_prometheus_name(const struct metric *m, char *out)
{
	const struct metric_unit *u = metric_unit(m->unit);
	const char *word = m->id;
	size_t n, len;

	*out = '\0';
	if (m->kind != METRIC_NUM || !u)
		return out;
	len = (size_t)snprintf(out, METRIC_PROMETHEUS_BYTES, "crema_run");
	while (*word) {
		n = strcspn(word, "_");
		/* "_count" at the end belongs to histograms: x_count is the number of xs */
		if (!word[n] && n == 5 && !strncmp(word, "count", n))
			len += (size_t)snprintf(out + len, METRIC_PROMETHEUS_BYTES - len, "s");
		else if (!has_word(u->words, word, n))
			len += (size_t)snprintf(out + len, METRIC_PROMETHEUS_BYTES - len, "_%.*s",
						(int)n, word);
		word += n + (word[n] == '_');
	}
	snprintf(out + len, METRIC_PROMETHEUS_BYTES - len, "%s", u->suffix);
	return out;
}

static void put_help(struct sink *s, const struct metric *m)
{
	const struct metric_unit *u = metric_unit(m->unit);
	const char *p;

	for (p = m->help; *p; p++) {
		if (*p == '\\')
			sink_puts(s, "\\\\");
		else if (*p == '\n')
			sink_puts(s, "\\n");
		else
			sink_put(s, p, 1);
	}
	if (u->base == 1)
		return;
	sink_printf(s, " (%s; here in ", m->unit);
	for (p = u->suffix + 1; *p; p++)
		sink_put(s, *p == '_' ? " " : p, 1);
	sink_puts(s, ")");
}

static void put_gauge(struct sink *s, const char *name, const struct metric *m, struct value v)
{
	double base = metric_unit(m->unit)->base, d;
	bool known;

	sink_printf(s, "# HELP %s ", name);
	put_help(s, m);
	sink_printf(s, "\n# TYPE %s gauge\n", name);
	d = value_number(v, &known);
	if (!known)
		return;
	if (v.type == VALUE_UINT && base == 1)
		sink_printf(s, "%s %" PRIu64 "\n", name, v.v.u);
	else if (v.type == VALUE_INT && base == 1)
		sink_printf(s, "%s %" PRId64 "\n", name, v.v.i);
	else
		sink_sample(s, name, d * base);
}

void metrics_prometheus(const struct facts *f, struct sink *s)
{
	char(*names)[METRIC_PROMETHEUS_BYTES] = calloc(metric_count, sizeof(*names));
	size_t i, k;

	if (!names) {
		s->error = -ENOMEM;
		return;
	}
	for (i = 0; i < metric_count; i++) {
		metric_prometheus_name(&metric_table[i], names[i]);
		for (k = 0; k < i && strcmp(names[k], names[i]) != 0; k++)
			;
		if (*names[i] && k == i)
			put_gauge(s, names[i], &metric_table[i], metric_table[i].num(f));
	}
	free(names);
}
