/* SPDX-License-Identifier: BSD-3-Clause */
/* findings_out.c - findings as text and as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/emit/emit_table.h"
#include "collector/emit/emit_text.h"
#include "collector/findings/findings.h"

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

/* Lists what was checked, in one line. */
static void put_checked(const struct findings *f, struct sink *s)
{
	sink_printf(s, "%s%zu checks were made", f->n ? "" : "no findings: ", f->made);
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

const char *finding_cost(const struct finding *f, char *out, size_t size)
{
	int digits = f->of_s < 1 ? 3 : f->of_s < 100 ? 1 : 0, n = 0;
	double least = pow(10, -digits), cost = f->cost_s;
	const char *how = f->cost_is_least ? "at least" : "about";

	*out = 0;
	if (!isfinite(cost) || !isfinite(f->of_s))
		return out;
	if (cost < least / 2) { /* avoid "at least 0.0", which has no meaning */
		if (f->cost_is_least)
			return out;
		how = "less than";
		cost = least;
	}
	n = snprintf(out, size, "costs %s %.*f of %.*f s", how, digits, cost, digits, f->of_s);
	if (f->gain && n > 0 && (size_t)n < size)
		snprintf(out + n, size - (size_t)n, "; the advice saves %s", f->gain);
	return out;
}

void finding_cells(const struct finding *one, char cost[FINDING_COST_BYTES], cell_put put,
		   void *arg)
{
	finding_cost(one, cost, FINDING_COST_BYTES);
	put(arg, "id", VALUE_TEXT, value_text(one->id));
	put(arg, "severity", VALUE_TEXT, value_text(finding_severity_name(one->severity)));
	put(arg, "sentence", VALUE_TEXT, value_text(one->sentence));
	put(arg, "advice", VALUE_TEXT, value_text(one->advice));
	put(arg, "cost", VALUE_TEXT, value_text(*cost ? cost : NULL));
	put(arg, "cost_seconds", VALUE_REAL, value_real(one->cost_s));
	put(arg, "cost_at_least", VALUE_BOOL, value_bool(one->cost_is_least));
	put(arg, "of_seconds", VALUE_REAL, value_real(one->of_s));
	put(arg, "gain", VALUE_TEXT, value_text(one->gain));
	put(arg, "gain_seconds", VALUE_REAL, value_real(one->gain_s));
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

static void put_list(const struct finding *v, size_t n, struct json *j, const char *name)
{
	char cost[FINDING_COST_BYTES];
	size_t i;

	emit_array(j, name);
	for (i = 0; i < n; i++) {
		emit_object(j, NULL);
		finding_cells(&v[i], cost, emit_cell, j);
		finding_evidence_json(&v[i], j, "evidence");
		if (v[i].left_out_for)
			emit_value(j, "left_out_for", value_text(v[i].left_out_for));
		emit_end(j);
	}
	emit_end(j);
}

void findings_json(const struct findings *f, struct json *j)
{
	size_t i;

	put_list(f->v, f->n, j, "findings");
	put_list(f->v + f->n, f->left_out, j, "findings_left_out");
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

/* Wraps at spaces; the first line begins at column `at`, the others at `indent`. */
static void put_wrapped(struct sink *s, const char *text, size_t indent, size_t at)
{
	size_t bytes, columns;
	bool first = true;

	for (; *text; text += bytes) {
		text += strspn(text, " ");
		columns = text_word(text, &bytes);
		if (!columns)
			break;
		/* keep a number with its unit */
		while (text[bytes] == ' ' && text[bytes - 1] >= '0' && text[bytes - 1] <= '9') {
			size_t more, next = text_word(text + bytes + 1, &more);

			if (!next || next > 5)
				break;
			columns += 1 + next;
			bytes += 1 + more;
		}
		if (!first && at + 1 + columns > sink_prose_columns(s)) {
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

/* How much of a finding is printed. */
enum extent { SENTENCE, WITH_ADVICE, WHOLE };

static void put_finding(const struct finding *one, enum extent extent, struct sink *s, bool colour)
{
	static const char *const tags[FINDING_SEVERITIES] = {"HIGH", "WARNING", "NOTE"};
	static const char *const colours[FINDING_SEVERITIES] = {"\033[1;31m", "\033[33m",
								"\033[36m"};
	char cost[FINDING_COST_BYTES];

	sink_printf(s, "  %s%-*s%s", colour ? colours[one->severity] : "", INDENT - 2,
		    tags[one->severity], colour ? "\033[0m" : "");
	put_wrapped(s, one->sentence, INDENT, INDENT);
	if (extent == SENTENCE)
		return;
	if (extent == WHOLE && *finding_cost(one, cost, sizeof(cost))) {
		sink_printf(s, "%*s", INDENT, "");
		put_wrapped(s, cost, INDENT, INDENT);
	}
	sink_printf(s, "%*s%s", INDENT, "", colour ? "\033[2m" : "");
	put_wrapped(s, one->advice, INDENT, INDENT);
	if (colour)
		sink_puts(s, "\033[0m");
}

/* The last clause of a sentence; NULL: it has only one. */
static char *last_clause(char *text)
{
	char *found = NULL;

	for (text = strstr(text, "; "); text; text = strstr(text + 2, "; "))
		found = text;
	return found;
}

/* As much of the first one as fits: extra clauses of its sentence are dropped first, then its cost
 * and advice. */
static void put_first(const struct finding *f, size_t lines, struct sink *one, bool colour)
{
	struct finding shorter = *f;
	char *text = strdup(f->sentence), *clause;
	int extent = WHOLE;

	shorter.sentence = text ? text : f->sentence;
	for (;;) {
		buf_clear(one->out);
		put_finding(&shorter, (enum extent)extent, one, colour);
		if (buf_lines(one->out) <= lines || extent == SENTENCE)
			break;
		clause = text ? last_clause(text) : NULL;
		if (clause)
			*clause = '\0';
		else
			extent--;
	}
	free(text);
}

/* "  and 4 more (storage_wait, imports): --show findings": names as many of the warnings among them
 * as fit on the line. */
static void put_more(const struct findings *f, size_t shown, struct sink *s)
{
	size_t i, room = sink_columns(s), used = strlen("  and 99 more (, ...): --show findings");
	const char *before = " (";

	sink_printf(s, "  and %zu more", f->n - shown);
	for (i = shown; i < f->n && f->v[i].severity != FINDING_NOTE; i++) {
		used += strlen(f->v[i].id) + 2;
		sink_printf(s, "%s%s", before, used > room ? "..." : f->v[i].id);
		before = ", ";
		if (used > room)
			break;
	}
	sink_printf(s, "%s: --show findings\n", *before == ',' ? ")" : "");
}

void findings_brief(const struct findings *f, size_t most, size_t lines, struct sink *s,
		    bool colour)
{
	size_t i, used = 3, shown = 0; /* the title, and the line below */
	struct buf b = BUF_INIT;
	struct sink one = {.out = &b, .width = s->width};

	table_section(s, colour, "What to change");
	if (!f->n)
		sink_puts(s, "  nothing found\n");
	for (i = 0; i < f->n && shown < most; i++) {
		if (i && f->v[i].severity == FINDING_NOTE)
			break;
		buf_clear(&b);
		if (shown)
			put_finding(&f->v[i], WHOLE, &one, colour);
		else
			put_first(&f->v[i], lines > used ? lines - used : 0, &one, colour);
		if (shown && used + buf_lines(&b) > lines)
			break;
		used += buf_lines(&b);
		sink_put(s, (const char *)b.data, b.len);
		shown++;
	}
	if (one.error)
		s->error = one.error;
	if (shown < f->n)
		put_more(f, shown, s);
	buf_release(&b);
}

void findings_text(const struct findings *f, struct sink *s, bool colour)
{
	struct buf b = BUF_INIT;
	struct sink line = {.out = &b};
	size_t i;

	table_section(s, colour, "Findings");
	for (i = 0; i < f->n; i++)
		put_finding(&f->v[i], WHOLE, s, colour);
	put_checked(f, &line);
	if (line.error || buf_add(&b, "", 1)) {
		s->error = line.error ? line.error : -ENOMEM; /* the buffer holds no terminator */
	} else {
		sink_puts(s, "  ");
		put_wrapped(s, (const char *)b.data, 2, 2);
	}
	buf_release(&b);
}
