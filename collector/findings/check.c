/* SPDX-License-Identifier: BSD-3-Clause */
/* check.c - findings under way: sentences, evidence, and texts for them. */
#include "collector/findings/check.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "collector/emit/emit_text.h"

#define NAME_COLUMNS 48

__attribute__((format(printf, 3, 0))) static const char *keep(struct remark *d, const char *before,
							      const char *fmt, va_list ap)
{
	size_t head = before ? strlen(before) : 0;
	va_list again;
	char *text;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	text = n < 0 ? NULL : arena_get(d->arena, head + (size_t)n + 1);
	if (!text) {
		d->no_memory = true;
		return "";
	}
	if (before)
		memcpy(text, before, head);
	vsnprintf(text + head, (size_t)n + 1, fmt, ap);
	return text;
}

void remark_say(struct remark *d, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	d->f.sentence = keep(d, NULL, fmt, ap);
	va_end(ap);
}

void remark_say_more(struct remark *d, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	d->f.sentence = keep(d, d->f.sentence, fmt, ap);
	va_end(ap);
}

void remark_advise(struct remark *d, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	d->f.advice = keep(d, NULL, fmt, ap);
	va_end(ap);
}

void remark_see(struct remark *d, const char *name, struct value v, const char *unit)
{
	if (d->f.evidence_count < FINDING_EVIDENCE)
		d->f.evidence[d->f.evidence_count++] = (struct evidence){name, v, unit};
}

struct value remark_see_metric(struct remark *d, const struct report *r, const char *id,
			       const char *unit)
{
	struct value v = metric_value(r->facts, id);

	remark_see(d, id, v, unit);
	return v;
}

enum verdict remark_found(struct remark *d, double weight)
{
	d->f.weight = isfinite(weight) ? fmin(fmax(weight, 0), 1) : 0;
	return CHECK_FOUND;
}

enum verdict remark_unknown(struct remark *d, const char *input)
{
	d->unknown = input;
	return CHECK_UNKNOWN;
}

__attribute__((format(printf, 2, 3))) static const char *print(struct remark *d, const char *fmt,
							       ...)
{
	const char *text;
	va_list ap;

	va_start(ap, fmt);
	text = keep(d, NULL, fmt, ap);
	va_end(ap);
	return text;
}

const char *remark_human(struct remark *d, struct value v, enum human as)
{
	char text[HUMAN_BYTES];

	return print(d, "%s", human(v, as, text));
}

const char *remark_percent(struct remark *d, double percent)
{
	return print(d, fabs(percent) < 9.95 ? "%.1f %%" : "%.0f %%", percent);
}

/* The end of a path or key says most: the middle gives way. */
const char *remark_name(struct remark *d, const char *name)
{
	size_t n = name ? strlen(name) : 0;
	char *copy = name ? arena_get(d->arena, n + 1) : NULL;

	if (!name)
		return "unknown";
	if (!copy) {
		d->no_memory = true;
		return "";
	}
	memcpy(copy, name, n + 1);
	text_shorten(text_clean(copy), NAME_COLUMNS);
	return print(d, "'%s'", copy);
}

const char *remark_upper(struct remark *d, const char *text)
{
	size_t i, n = strlen(text);
	char *copy = arena_get(d->arena, n + 1);

	if (!copy) {
		d->no_memory = true;
		return "";
	}
	memcpy(copy, text, n + 1);
	text_shorten(text_clean(copy), NAME_COLUMNS);
	for (i = 0; copy[i]; i++)
		copy[i] = (char)toupper((unsigned char)copy[i]);
	return copy;
}

const char *class_words(unsigned int id)
{
	return row_times[id].words;
}

bool reaches(double part, double whole, double percent, double amount)
{
	return whole > 0 && part >= amount && part * 100 >= whole * percent;
}
