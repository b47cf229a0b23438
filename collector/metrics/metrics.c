/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics.c - the table of all metrics, and its output. */
#include "collector/metrics/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SHORT_TREE_BYTES 60
#define TEXT_BYTES 64

#define GROUP(id, title)
#define METRIC_FUNCTION_NUM(id) .num = metric_##id
#define METRIC_FUNCTION_TEXT(id) .num = metric_##id
#define METRIC_FUNCTION_TREE(id) .tree = metric_##id
#define METRIC(id, alias, unit, kind, group, source, help)                                         \
	{#id,                                                                                      \
	 alias,                                                                                    \
	 unit,                                                                                     \
	 #source,                                                                                  \
	 help,                                                                                     \
	 METRIC_##kind,                                                                            \
	 METRIC_GROUP_##group,                                                                     \
	 METRIC_FUNCTION_##kind(id)},

const struct metric metric_table[] = {
#include "metrics.def"
};
#undef METRIC
#undef GROUP

const size_t metric_count = sizeof(metric_table) / sizeof(*metric_table);

#define METRIC(id, alias, unit, kind, group, source, help)
#define GROUP(id, title) title,
const char *const metric_group_titles[METRIC_GROUPS] = {
#include "metrics.def"
};
#undef METRIC
#undef GROUP

void metrics_emit(const struct facts *f, struct json *j)
{
	const struct metric *m;
	struct value v;
	size_t i;

	for (i = 0; i < metric_count; i++) {
		m = &metric_table[i];
		if (m->kind == METRIC_TREE) {
			m->tree(f, m->id, j);
			if (*m->alias)
				m->tree(f, m->alias, j);
			continue;
		}
		v = m->num(f);
		emit_value(j, m->id, v);
		if (*m->alias)
			emit_value(j, m->alias, v);
	}
}

const struct metric *metric_find(const char *id)
{
	size_t i;

	for (i = 0; i < metric_count; i++) {
		if (!strcmp(metric_table[i].id, id))
			return &metric_table[i];
	}
	return NULL;
}

struct value metric_value(const struct facts *f, const char *id)
{
	const struct metric *m = metric_find(id);

	return m && m->kind != METRIC_TREE ? m->num(f) : value_null();
}

/* Keeps the beginning of a text of any length, and the length. */
struct beginning {
	char text[SHORT_TREE_BYTES + 1];
	size_t n;
};

static int keep_beginning(struct buf *out, void *arg)
{
	struct beginning *b = arg;
	size_t room = b->n < SHORT_TREE_BYTES ? SHORT_TREE_BYTES - b->n : 0;

	if (room)
		memcpy(b->text + b->n, out->data, out->len < room ? out->len : room);
	b->n += out->len;
	buf_clear(out);
	return 0;
}

static void tree_text(const struct metric *m, const struct facts *f, char *out)
{
	struct buf buf = BUF_INIT;
	struct beginning b = {.n = 0};
	struct sink s = {.out = &buf, .flush = keep_beginning, .arg = &b};
	struct json j;

	emit_init(&j, &s);
	j.pretty = false;
	m->tree(f, NULL, &j);
	sink_end(&s);
	while (b.n && b.n <= SHORT_TREE_BYTES && b.text[b.n - 1] == '\n')
		b.n--;
	if (s.error)
		snprintf(out, TEXT_BYTES, "out of memory");
	else if (b.n == 4 && !memcmp(b.text, "null", 4))
		snprintf(out, TEXT_BYTES, "unknown");
	else if (b.n <= SHORT_TREE_BYTES)
		snprintf(out, TEXT_BYTES, "%.*s", (int)b.n, b.text);
	else
		snprintf(out, TEXT_BYTES, "%zu %s", j.members,
			 j.members == 1 ? "entry" : "entries");
	buf_release(&buf);
}

void metrics_each(const struct facts *f,
		  void (*see)(void *arg, const struct metric *m, struct value v, const char *text),
		  void *arg)
{
	const struct metric *m;
	const struct metric_unit *u;
	char text[TEXT_BYTES];
	struct value v;
	size_t i;

	for (i = 0; i < metric_count; i++) {
		m = &metric_table[i];
		u = metric_unit(m->unit);
		v = m->kind == METRIC_TREE ? value_null() : m->num(f);
		if (m->kind == METRIC_TREE)
			tree_text(m, f, text);
		else if (v.type != VALUE_TEXT)
			human(v, u ? u->as : AS_IS, text);
		see(arg, m, v, v.type == VALUE_TEXT ? v.v.s : text);
	}
}
