/* SPDX-License-Identifier: BSD-3-Clause */
/* findings_out.c - findings as text of 80 columns and as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collector/emit/emit_table.h"
#include "collector/findings/findings.h"
#include "common/utf8.h"

#define INDENT 11

static void put_gaps(const struct findings *f, struct sink *s)
{
	size_t i, k, n = 0;

	for (i = 0; i < f->gap_count; i++) {
		for (k = 0; k < i && strcmp(f->gaps[k].unknown, f->gaps[i].unknown) != 0; k++)
			;
		if (k == i)
			sink_printf(s, "%s%s", n++ ? ", " : "", f->gaps[i].unknown);
	}
}

/* What was looked at, in one line. */
static void put_checked(const struct findings *f, struct sink *s)
{
	sink_printf(s, "%s%zu checks were made", f->n ? "" : "nothing to remark: ", f->made);
	if (f->idle)
		sink_printf(s, ", %zu had nothing to look at", f->idle);
	if (f->gap_count) {
		sink_printf(s, ", %zu could not be made (unknown: ", f->gap_count);
		put_gaps(f, s);
		sink_puts(s, ")");
	}
}

const char *findings_checked(struct findings *f)
{
	struct buf b = BUF_INIT;
	struct sink s = {.out = &b};
	char *text = NULL;

	put_checked(f, &s);
	if (!s.error)
		text = arena_get(&f->arena, b.len + 1);
	if (text)
		memcpy(text, b.data, b.len);
	buf_release(&b);
	return text ? text : "";
}

void finding_evidence_json(const struct finding *one, struct json *j, const char *name)
{
	const struct evidence *e;
	size_t i;

	emit_array(j, name);
	for (i = 0; i < one->evidence_count; i++) {
		e = &one->evidence[i];
		emit_object(j, NULL);
		emit_value(j, "name", value_text(e->name));
		emit_value(j, "value", e->value);
		emit_value(j, "unit", value_text(e->unit));
		emit_end(j);
	}
	emit_end(j);
}

void findings_json(const struct findings *f, struct json *j)
{
	const struct finding *one;
	size_t i;

	emit_array(j, "findings");
	for (i = 0; i < f->n; i++) {
		one = &f->v[i];
		emit_object(j, NULL);
		emit_value(j, "id", value_text(one->id));
		emit_value(j, "severity", value_text(finding_severity_name(one->severity)));
		emit_value(j, "sentence", value_text(one->sentence));
		emit_value(j, "advice", value_text(one->advice));
		finding_evidence_json(one, j, "evidence");
		emit_end(j);
	}
	emit_end(j);
	emit_object(j, "findings_checked");
	emit_value(j, "made", value_uint(f->made));
	emit_array(j, "nothing_to_look_at");
	for (i = 0; i < f->idle; i++)
		emit_value(j, NULL, value_text(f->idle_ids[i]));
	emit_end(j);
	emit_array(j, "not_made");
	for (i = 0; i < f->gap_count; i++) {
		emit_object(j, NULL);
		emit_value(j, "id", value_text(f->gaps[i].id));
		emit_value(j, "unknown", value_text(f->gaps[i].unknown));
		emit_end(j);
	}
	emit_end(j);
	emit_end(j);
}

/* Characters of the word at `text`, and its bytes. */
static size_t word(const char *text, size_t *bytes)
{
	size_t n = 0;

	for (*bytes = 0; text[*bytes] && text[*bytes] != ' '; (*bytes)++)
		n += utf8_begins(text[*bytes]);
	return n;
}

/* Wraps at spaces; the first line begins at column `at`, the others at `indent`. */
static void put_wrapped(struct sink *s, const char *text, size_t indent, size_t at)
{
	size_t bytes, columns;
	bool first = true;

	for (; *text; text += bytes) {
		text += strspn(text, " ");
		columns = word(text, &bytes);
		if (!columns)
			break;
		/* a number stays with its unit */
		while (text[bytes] == ' ' && text[bytes - 1] >= '0' && text[bytes - 1] <= '9') {
			size_t more, next = word(text + bytes + 1, &more);

			if (!next || next > 5)
				break;
			columns += 1 + next;
			bytes += 1 + more;
		}
		if (!first && at + 1 + columns > TABLE_WIDTH) {
			sink_printf(s, "\n%*s", (int)indent, "");
			at = indent;
			first = true;
		}
		if (!first)
			sink_puts(s, " ");
		at += columns + !first;
		sink_put(s, text, bytes);
		first = false;
	}
	sink_puts(s, "\n");
}

void findings_text(const struct findings *f, struct sink *s, bool colour)
{
	static const char *const tags[FINDING_SEVERITIES] = {"HIGH", "WARNING", "NOTE"};
	static const char *const colours[FINDING_SEVERITIES] = {"\033[1;31m", "\033[33m",
								"\033[36m"};
	struct buf b = BUF_INIT;
	struct sink line = {.out = &b};
	size_t i;

	table_section(s, colour, "Findings");
	for (i = 0; i < f->n; i++) {
		sink_printf(s, "  %s%-*s%s", colour ? colours[f->v[i].severity] : "", INDENT - 2,
			    tags[f->v[i].severity], colour ? "\033[0m" : "");
		put_wrapped(s, f->v[i].sentence, INDENT, INDENT);
		sink_printf(s, "%*s%s", INDENT, "", colour ? "\033[2m" : "");
		put_wrapped(s, f->v[i].advice, INDENT, INDENT);
		if (colour)
			sink_puts(s, "\033[0m");
	}
	put_checked(f, &line);
	if (line.error || buf_add(&b, "", 1))
		s->error = line.error ? line.error : -1;
	sink_puts(s, "  ");
	put_wrapped(s, b.data ? (const char *)b.data : "", 2, 2);
	buf_release(&b);
}
