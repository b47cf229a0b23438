/* SPDX-License-Identifier: BSD-3-Clause */
/* doctor.c - the list of results, as text and as JSON. */
#include "collector/doctor/doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/emit/emit_json.h"
#include "collector/emit/emit_text.h"
#include "version.h"

static const char *const level_name[] = {"ok", "warn", "bad", "unknown"};

void doctor_release(struct doctor *d)
{
	for (size_t i = 0; i < d->n; i++) {
		free(d->line[i].text);
		free(d->line[i].advice);
	}
	for (size_t i = 0; i < d->targets; i++) {
		free(d->target[i].address);
		free(d->target[i].token_file);
		free(d->target[i].spool);
	}
	free(d->target);
	free(d->line);
	*d = (struct doctor){0};
}

void doctor_say(struct doctor *d, enum doctor_level level, const char *about, const char *format,
		...)
{
	struct doctor_line *grown = reallocarray(d->line, d->n + 1, sizeof(*grown));
	char *text = NULL;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		text = NULL;
	va_end(ap);
	if (grown)
		d->line = grown;
	if (!grown || !text) {
		free(text);
		d->error = -ENOMEM;
		return;
	}
	d->line[d->n++] = (struct doctor_line){level, about, text, NULL};
}

void doctor_advise(struct doctor *d, const char *format, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0 || !d->n) {
		free(text);
		text = NULL;
		d->error = -ENOMEM;
	}
	va_end(ap);
	if (text) {
		free(d->line[d->n - 1].advice);
		d->line[d->n - 1].advice = text;
	}
}

void doctor_target(struct doctor *d, const char *address, const char *token_file, const char *spool)
{
	struct doctor_target *grown, *t;

	for (size_t i = 0; i < d->targets; i++)
		if (!strcmp(d->target[i].address, address) &&
		    !strcmp(d->target[i].token_file, token_file))
			return;
	grown = reallocarray(d->target, d->targets + 1, sizeof(*grown));
	if (!grown) {
		d->error = -ENOMEM;
		return;
	}
	d->target = grown;
	t = &grown[d->targets++];
	*t = (struct doctor_target){strdup(address), strdup(token_file), strdup(spool)};
	if (!t->address || !t->token_file || !t->spool) {
		free(t->address);
		free(t->token_file);
		free(t->spool);
		d->targets--;
		d->error = -ENOMEM;
	}
}

size_t doctor_count(const struct doctor *d, enum doctor_level level)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n; i++)
		n += d->line[i].level == level;
	return n;
}

/* "2 problems and 1 warning; 12 checks passed; 3 workers on this machine" */
static void put_summary(const struct doctor *d, struct sink *s)
{
	size_t bad = doctor_count(d, DOCTOR_BAD), warn = doctor_count(d, DOCTOR_WARN);
	size_t unknown = doctor_count(d, DOCTOR_UNKNOWN), ok = doctor_count(d, DOCTOR_OK);

	if (bad || warn)
		sink_printf(s, "%zu problem%s, %zu warning%s", bad, plural(bad), warn,
			    plural(warn));
	else
		sink_puts(s, "no problem found");
	if (unknown)
		sink_printf(s, "; %zu check%s could not be made", unknown, plural(unknown));
	sink_printf(s, "; %zu check%s passed; %zu worker%s", ok, plural(ok), d->workers,
		    plural(d->workers));
	if (d->others)
		sink_printf(s, ", and %zu of other users (--all-users)", d->others);
	sink_puts(s, "\n\n");
}

int doctor_text(const struct doctor *d, struct buf *out)
{
	static const char *const shown[] = {"ok", "warn", "FAIL", "unknown"};
	struct sink s = {.out = out};
	char lead[64];

	put_summary(d, &s);
	for (size_t i = 0; i < d->n; i++) {
		const struct doctor_line *l = &d->line[i];

		snprintf(lead, sizeof(lead), "%-7s  %-12s  ", shown[l->level], l->about);
		text_paragraph(&s, lead, "%s", l->text);
		if (l->advice)
			text_paragraph(&s, "                       -> ", "%s", l->advice);
	}
	return sink_end(&s);
}

int doctor_json(const struct doctor *d, struct buf *out)
{
	struct sink s = {.out = out};
	struct json j;

	emit_init(&j, &s);
	j.pretty = true;
	emit_object(&j, NULL);
	emit_value(&j, "version", value_text(CREMA_VERSION));
	emit_value(&j, "workers", value_uint(d->workers));
	for (int level = DOCTOR_OK; level <= DOCTOR_UNKNOWN; level++)
		emit_value(&j, level_name[level], value_uint(doctor_count(d, level)));
	emit_array(&j, "lines");
	for (size_t i = 0; i < d->n; i++) {
		emit_object(&j, NULL);
		emit_value(&j, "level", value_text(level_name[d->line[i].level]));
		emit_value(&j, "about", value_text(d->line[i].about));
		emit_value(&j, "text", value_text(d->line[i].text));
		emit_value(&j, "advice", value_text(d->line[i].advice));
		emit_end(&j);
	}
	emit_end(&j);
	emit_end(&j);
	sink_puts(&s, "\n");
	return sink_end(&s);
}
