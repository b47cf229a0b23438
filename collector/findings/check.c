/* SPDX-License-Identifier: BSD-3-Clause */
/* check.c - builds findings: sentences, evidence, and their texts. */
#include "collector/findings/check.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "collector/emit/emit_text.h"

#define NAME_COLUMNS 48

__attribute__((format(printf, 3, 0))) static const char *keep(struct draft *d, const char *before,
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

void draft_sentence(struct draft *d, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	d->f.sentence = keep(d, NULL, fmt, ap);
	va_end(ap);
}

void draft_sentence_more(struct draft *d, const char *fmt, ...)
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

void draft_evidence(struct draft *d, const char *name, struct value v, const char *unit)
{
	if (d->f.evidence_count < FINDING_EVIDENCE)
		d->f.evidence[d->f.evidence_count++] = (struct evidence){name, v, unit};
}

struct value draft_evidence_metric(struct draft *d, const struct report *r, const char *id,
				   const char *unit)
{
	struct value v = metric_value(r->facts, id);

	draft_evidence(d, id, v, unit);
	return v;
}

void draft_cost(struct draft *d, double seconds)
{
	d->f.cost_s = fmin(fmax(seconds, 0), d->f.of_s);
	if (isnan(seconds) || isnan(d->f.of_s))
		d->f.cost_s = (double)NAN;
}

void draft_cost_least(struct draft *d, double seconds)
{
	draft_cost(d, seconds);
	d->f.cost_is_least = true;
}

void draft_gain(struct draft *d, double seconds, const char *fmt, ...)
{
	va_list ap;

	d->f.gain_s = seconds;
	va_start(ap, fmt);
	d->f.gain = keep(d, NULL, fmt, ap);
	va_end(ap);
}

void draft_gain_most(struct draft *d, double seconds)
{
	if (isfinite(seconds) && isfinite(d->f.of_s) && seconds > 0)
		draft_gain(d, fmin(seconds, d->f.of_s), "at most %s",
			   draft_human(d, value_real(fmin(seconds, d->f.of_s)), AS_SECONDS));
}

void draft_severity(struct draft *d, enum finding_severity severity)
{
	d->f.beyond = severity == FINDING_NOTE && d->check->severity != FINDING_NOTE;
	d->f.severity = severity;
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

const char *draft_integer(struct draft *d, double n)
{
	char digits[32], text[48];
	size_t i, k = 0, length;

	length = (size_t)snprintf(digits, sizeof(digits), "%.0f", n);
	for (i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			text[k++] = '_';
		text[k++] = digits[i];
	}
	text[k] = 0;
	return print(d, "%s", text);
}

/* The end of a path or key is the most specific part: the middle is cut. */
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

const char *draft_list(struct draft *d, const char *list, const char *name)
{
	char *last = (char *)print(d, "%s%s'%s'", list, *list ? ", " : "", name ? name : "");

	return text_clean(last);
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

static const char *joined(struct draft *d, const char *what, const char *name)
{
	return print(d, "%s%s", what, name);
}

void draft_place(struct draft *d, const struct attempt *a, const char *what)
{
	struct value from = attempt_i64(a, TASK_F_entrystart);
	struct value to = attempt_i64(a, TASK_F_entrystop);

	if (a->dataset) {
		draft_evidence(d, joined(d, what, "dataset"), value_text(a->dataset), "");
		draft_sentence_more(d, ", dataset %s", draft_name(d, a->dataset));
	}
	if (a->filename) {
		draft_evidence(d, joined(d, what, "file"), value_text(a->filename), "");
		draft_sentence_more(d, ", file %s", draft_name(d, a->filename));
	}
	if (from.type == VALUE_NULL || to.type == VALUE_NULL)
		return;
	draft_evidence(d, joined(d, what, "entrystart"), from, "events");
	draft_evidence(d, joined(d, what, "entrystop"), to, "events");
	draft_sentence_more(d, ", entries %s to %s", draft_human(d, from, AS_COUNT),
			    draft_human(d, to, AS_COUNT));
}

const char *class_words(unsigned int id)
{
	return row_times[id].words;
}

bool reaches(double part, double whole, double percent, double amount)
{
	return whole > 0 && part >= amount && part * 100 >= whole * percent;
}

const char *draft_code_line(struct draft *d, const char *evidence, const struct line_place *place)
{
	char text[192];
	const char *name = print(d, "%s", lines_name(place, text));

	draft_evidence(d, evidence, value_text(name), "");
	draft_evidence(d, print(d, "%s_file", evidence), value_text(place->file), "");
	return name;
}

const char *draft_evidence_line(struct draft *d, const struct line_place *place, double share,
				uint64_t samples, uint64_t of_samples)
{
	double error = lines_error(share, of_samples);
	const char *name = draft_code_line(d, "line", place);

	draft_evidence(d, "line_percent", value_real(share * 100), "%");
	draft_evidence(d, "line_percent_error", value_real(error * 100), "%");
	draft_evidence(d, "line_samples", value_uint(samples), "samples");
	return name;
}

const char *draft_reader(const struct report *r, struct draft *d, size_t number, double least,
			 const struct read_line **line)
{
	const struct read_line *s = read_lines_most(&r->read_lines, number, least);
	const char *name;

	*line = s;
	if (!s)
		return NULL;
	name = draft_code_line(d, "read_line",
			       &(struct line_place){s->function, s->file, s->line, true});
	draft_evidence(d, "read_line_columns", value_uint(s->columns.n), "columns");
	return draft_name(d, name);
}

const char *draft_line_share(struct draft *d, double share, uint64_t of_samples)
{
	double error = lines_error(share, of_samples);

	return print(d, "%s +- %s", draft_percent(d, share * 100), draft_percent(d, error * 100));
}

/* Adds evidence of the line with most sampled time of a class, if it has that share; its name
 * or NULL. */
static const char *see_hottest(struct draft *d, const struct report *r, enum crema_time_id id,
			       double least, double *share, uint64_t *samples)
{
	const struct line_row *row = lines_hottest(&r->lines, id, REMARK_SAMPLES, share);

	if (!row || *share < least)
		return NULL;
	*samples = row->sum.class_samples[id];
	return draft_evidence_line(d, row->place, *share, *samples, r->lines.all.class_samples[id]);
}

void draft_line(struct draft *d, const struct report *r, enum crema_time_id id)
{
	double share;
	uint64_t samples;
	const char *name = see_hottest(d, r, id, 0, &share, &samples);

	if (name)
		draft_sentence_more(d, "; %s of it at %s (%s samples)",
				    draft_line_share(d, share, r->lines.all.class_samples[id]),
				    draft_name(d, name),
				    draft_human(d, value_uint(samples), AS_COUNT));
}

void draft_holder(struct draft *d, const struct blocking_row *row)
{
	struct value samples, of;
	const char *name;

	if (!row || !row->holder)
		return;
	samples = value_uint(row->longest->holder.samples);
	of = value_uint(row->longest->holder.of);
	name = draft_code_line(d, "holder_line", row->holder);
	draft_evidence(d, "holder_samples", samples, "samples");
	draft_evidence(d, "holder_of_samples", of, "samples");
	draft_sentence_more(d, "; the longest wait was for a lock held at %s (%s of %s samples)",
			    draft_name(d, name), draft_human(d, samples, AS_COUNT),
			    draft_human(d, of, AS_COUNT));
}

void draft_waiting_line(struct draft *d, const struct blocking_row *row)
{
	if (row->line)
		draft_sentence_more(d, ", at %s",
				    draft_name(d, draft_code_line(d, "line", row->line)));
	draft_holder(d, row);
}

void draft_half(struct draft *d, const struct report *r)
{
	double share;
	uint64_t samples;
	const char *name = see_hottest(d, r, CREMA_T_cpu, 0.5, &share, &samples);

	if (name)
		draft_sentence_more(
			d, "; %s of the sampled CPU was at %s",
			draft_line_share(d, share, r->lines.all.class_samples[CREMA_T_cpu]),
			draft_name(d, name));
}

bool codec_is_beside_baskets(const struct report *r, const struct codec_sum *c)
{
	static const char *const of_root[] = {"zlib", "lzma", "lz4", "zstd"};
	bool known, root = false;
	double baskets =
		value_number(sum_value(&r->facts->chunks.count[CREMA_C_basket_raw_bytes]), &known);
	size_t i;

	for (i = 0; i < sizeof(of_root) / sizeof(*of_root); i++)
		root = root || !strcmp(c->codec, of_root[i]);
	return r->facts->chunks.attempts && known &&
	       (!root || value_number(c->decompress.out_bytes, NULL) > 2 * baskets);
}

double cost_of_baskets(const struct report *r, const struct costs *c)
{
	double cpu, all = 0, beside = 0;
	size_t i;

	for (i = 0; i < r->codecs.n; i++) {
		cpu = value_number(r->codecs.v[i].decompress.cpu_ns, NULL);
		all += cpu;
		beside += codec_is_beside_baskets(r, &r->codecs.v[i]) ? cpu : 0;
	}
	return c->reading + c->decompress * (all > 0 ? 1 - beside / all : 1);
}
