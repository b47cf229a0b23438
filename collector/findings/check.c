/* SPDX-License-Identifier: BSD-3-Clause */
/* check.c - drafts of findings: sentences, evidence, and texts for them. */
#include "collector/findings/check.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "collector/emit/emit_text.h"

#define NAME_COLUMNS 48

static const char *keep(struct draft *d, const char *before, const char *fmt, va_list ap)
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

void draft_say(struct draft *d, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	d->f.sentence = keep(d, NULL, fmt, ap);
	va_end(ap);
}

void draft_say_more(struct draft *d, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	d->f.sentence = keep(d, d->f.sentence, fmt, ap);
	va_end(ap);
}

void draft_advise(struct draft *d, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	d->f.advice = keep(d, NULL, fmt, ap);
	va_end(ap);
}

void draft_see(struct draft *d, const char *name, struct value v, const char *unit)
{
	if (d->f.evidence_count < FINDING_EVIDENCE)
		d->f.evidence[d->f.evidence_count++] = (struct evidence){name, v, unit};
}

struct value draft_see_metric(struct draft *d, const struct report *r, const char *id,
			      const char *unit)
{
	struct value v = metric_value(r->facts, id);

	draft_see(d, id, v, unit);
	return v;
}

enum verdict draft_found(struct draft *d, double weight)
{
	d->f.weight = isfinite(weight) ? fmin(fmax(weight, 0), 1) : 0;
	return CHECK_FOUND;
}

enum verdict draft_unknown(struct draft *d, const char *input)
{
	d->unknown = input;
	return CHECK_UNKNOWN;
}

__attribute__((format(printf, 2, 3))) static const char *print(struct draft *d, const char *fmt,
							       ...)
{
	const char *text;
	va_list ap;

	va_start(ap, fmt);
	text = keep(d, NULL, fmt, ap);
	va_end(ap);
	return text;
}

const char *draft_human(struct draft *d, struct value v, enum human as)
{
	char text[HUMAN_BYTES];

	return print(d, "%s", human(v, as, text));
}

const char *draft_percent(struct draft *d, double percent)
{
	return print(d, fabs(percent) < 9.95 ? "%.1f %%" : "%.0f %%", percent);
}

/* The end of a path or key says most: the middle gives way. */
const char *draft_name(struct draft *d, const char *name)
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

const char *draft_upper(struct draft *d, const char *text)
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
	static const char *const words[CREMA_TIMES] = {
		[CREMA_T_cpu] = "computing",
		[CREMA_T_runqueue] = "waiting for a core",
		[CREMA_T_gil_wait] = "waiting for the interpreter lock",
		[CREMA_T_lock_wait] = "waiting for locks",
		[CREMA_T_network_wait] = "waiting for the network",
		[CREMA_T_storage_wait] = "waiting for storage",
		[CREMA_T_sleep] = "asleep",
	};

	return words[id];
}

bool reaches(double part, double whole, double percent, double amount)
{
	return whole > 0 && part >= amount && part * 100 >= whole * percent;
}
