/* SPDX-License-Identifier: BSD-3-Clause */
/* coffea_report.c - reads coffea's own report and compares it with the workers' sums. */
#include "collector/report/coffea_report.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"

#define REPORT_MAX_BYTES (256u << 20)
#define PROCESSTIME_REL 1e-9

static const struct {
	const char *name, *metric;
} fields[COFFEA_FIELDS] = {
	{"entries", "total_events"},
	{"chunks", "num_chunks"},
	{"bytesread", "total_bytes_read_coffea"},
	{"processtime", "total_cpu_time"},
	{"columns", "num_columns"},
};

static bool is_report(const json_t *o)
{
	size_t i;

	for (i = 0; i < COFFEA_FIELDS; i++) {
		if (json_object_get(o, fields[i].name))
			return true;
	}
	return false;
}

/* Finds the report object in the saved JSON: itself, or the last one of a list. */
static const json_t *find_report(const json_t *root)
{
	size_t i;

	if (is_report(root))
		return root;
	for (i = json_array_size(root); i > 0; i--) {
		if (is_report(json_array_get(root, i - 1)))
			return json_array_get(root, i - 1);
	}
	return NULL;
}

static struct value field_value(const json_t *v)
{
	if (json_is_array(v))
		return value_uint(json_array_size(v));
	if (json_is_integer(v))
		return json_integer_value(v) < 0 ? value_int(json_integer_value(v))
						 : value_uint((uint64_t)json_integer_value(v));
	if (json_is_real(v))
		return value_real(json_real_value(v));
	return value_null();
}

__attribute__((format(printf, 2, 3))) static void add_line(struct coffea_report *c, const char *fmt,
							   ...)
{
	size_t n = strlen(c->line);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->line + n, sizeof(c->line) - n, fmt, ap);
	va_end(ap);
}

int coffea_report_parse(struct coffea_report *c, const char *text, size_t n, const char *name)
{
	json_error_t error;
	json_t *root = json_loadb(text, n, JSON_ALLOW_NUL, &error);
	const json_t *o;
	size_t i;
	bool first = true;

	memset(c, 0, sizeof(*c));
	if (!root) {
		add_line(c, "'%s' is not JSON: line %d: %s", name, error.line, error.text);
		return -EBADMSG;
	}
	o = find_report(root);
	if (!o) {
		add_line(c, "'%s' is not a coffea report (an object with entries, chunks, ...)",
			 name);
		json_decref(root);
		return -EBADMSG;
	}
	c->read = true;
	for (i = 0; i < COFFEA_FIELDS; i++) {
		c->field[i].name = fields[i].name;
		c->field[i].metric = fields[i].metric;
		c->field[i].verdict = COFFEA_UNKNOWN;
		c->field[i].theirs = field_value(json_object_get(o, fields[i].name));
		if (c->field[i].theirs.type != VALUE_NULL)
			continue;
		if (first)
			add_line(c, "'%s' lacks %s", name, fields[i].name);
		else
			add_line(c, ", %s", fields[i].name);
		first = false;
	}
	json_decref(root);
	return 0;
}

int coffea_report_read(struct coffea_report *c, const char *path)
{
	struct buf b = BUF_INIT;
	int fd, rc;

	memset(c, 0, sizeof(*c));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	rc = fd < 0 ? -errno : buf_read(&b, fd, REPORT_MAX_BYTES);
	if (fd >= 0)
		close(fd);
	if (rc)
		add_line(c, "cannot read '%s': %s", path, log_error(rc));
	else
		rc = coffea_report_parse(c, (const char *)b.data, b.len, path);
	buf_release(&b);
	return rc;
}

static bool same_count(struct value a, struct value b)
{
	if (a.type == VALUE_UINT && b.type == VALUE_UINT)
		return a.v.u == b.v.u;
	return value_number(a, NULL) == value_number(b, NULL);
}

void coffea_report_compare(struct coffea_report *c, const struct facts *f)
{
	struct coffea_field *p;
	double a, b;
	bool same;
	size_t i;

	for (i = 0; c->read && i < COFFEA_FIELDS; i++) {
		p = &c->field[i];
		p->ours = metric_value(f, p->metric);
		if (p->ours.type == VALUE_NULL || p->theirs.type == VALUE_NULL)
			continue;
		a = value_number(p->ours, NULL);
		b = value_number(p->theirs, NULL);
		if (!strcmp(p->name, "processtime"))
			same = fabs(a - b) <= PROCESSTIME_REL * fmax(fabs(a), fabs(b));
		else
			same = same_count(p->ours, p->theirs);
		p->verdict = same ? COFFEA_AGREES : COFFEA_DISAGREES;
	}
}

const char *coffea_verdict(const struct coffea_field *f)
{
	static const char *const words[] = {
		[COFFEA_AGREES] = "agrees",
		[COFFEA_DISAGREES] = "disagrees",
		[COFFEA_UNKNOWN] = "unknown",
	};

	return words[f->verdict];
}
