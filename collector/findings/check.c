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

void remark_cost(struct remark *d, double seconds)
{
	d->f.cost_s = fmin(fmax(seconds, 0), d->f.of_s);
	if (isnan(seconds) || isnan(d->f.of_s))
		d->f.cost_s = (double)NAN;
}

void remark_cost_least(struct remark *d, double seconds)
{
	remark_cost(d, seconds);
	d->f.cost_is_least = true;
}

void remark_gain(struct remark *d, double seconds, const char *fmt, ...)
{
	va_list ap;

	d->f.gain_s = seconds;
	va_start(ap, fmt);
	d->f.gain = keep(d, NULL, fmt, ap);
	va_end(ap);
}

void remark_gain_most(struct remark *d, double seconds)
{
	if (isfinite(seconds) && isfinite(d->f.of_s) && seconds > 0)
		remark_gain(d, fmin(seconds, d->f.of_s), "at most %s",
			    remark_human(d, value_real(fmin(seconds, d->f.of_s)), AS_SECONDS));
}

void remark_severity(struct remark *d, enum finding_severity severity)
{
	d->f.beyond = severity == FINDING_NOTE && d->check->severity != FINDING_NOTE;
	d->f.severity = severity;
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

const char *remark_integer(struct remark *d, double n)
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

const char *remark_list(struct remark *d, const char *list, const char *name)
{
	char *last = (char *)print(d, "%s%s'%s'", list, *list ? ", " : "", name ? name : "");

	return text_clean(last);
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

static const char *joined(struct remark *d, const char *what, const char *name)
{
	return print(d, "%s%s", what, name);
}

void remark_place(struct remark *d, const struct attempt *a, const char *what)
{
	struct value from = attempt_i64(a, TASK_F_entrystart);
	struct value to = attempt_i64(a, TASK_F_entrystop);

	if (a->dataset) {
		remark_see(d, joined(d, what, "dataset"), value_text(a->dataset), "");
		remark_say_more(d, ", dataset %s", remark_name(d, a->dataset));
	}
	if (a->filename) {
		remark_see(d, joined(d, what, "file"), value_text(a->filename), "");
		remark_say_more(d, ", file %s", remark_name(d, a->filename));
	}
	if (from.type == VALUE_NULL || to.type == VALUE_NULL)
		return;
	remark_see(d, joined(d, what, "entrystart"), from, "events");
	remark_see(d, joined(d, what, "entrystop"), to, "events");
	remark_say_more(d, ", entries %s to %s", remark_human(d, from, AS_COUNT),
			remark_human(d, to, AS_COUNT));
}

const char *class_words(unsigned int id)
{
	return row_times[id].words;
}

bool reaches(double part, double whole, double percent, double amount)
{
	return whole > 0 && part >= amount && part * 100 >= whole * percent;
}

const char *remark_see_line(struct remark *d, const struct line_place *place, double share,
			    uint64_t samples, uint64_t of_samples)
{
	double error = lines_error(share, of_samples);
	char text[192];
	const char *name = print(d, "%s", lines_name(place, text));

	remark_see(d, "line", value_text(name), "");
	remark_see(d, "line_file", value_text(place->file), "");
	remark_see(d, "line_percent", value_real(share * 100), "%");
	remark_see(d, "line_percent_error", value_real(error * 100), "%");
	remark_see(d, "line_samples", value_uint(samples), "samples");
	return name;
}

const char *remark_reader(const struct report *r, struct remark *d, size_t number, double least,
			  const struct read_line **line)
{
	const struct read_line *s = read_lines_most(&r->read_lines, number, least);
	const char *name;
	char text[192];

	*line = s;
	if (!s)
		return NULL;
	name = print(d, "%s",
		     lines_name(&(struct line_place){s->function, s->file, s->line, true}, text));
	remark_see(d, "read_line", value_text(name), "");
	remark_see(d, "read_line_file", value_text(s->file), "");
	remark_see(d, "read_line_columns", value_uint(s->columns.n), "columns");
	return remark_name(d, name);
}

const char *remark_line_share(struct remark *d, double share, uint64_t of_samples)
{
	double error = lines_error(share, of_samples);

	return print(d, "%s +- %s", remark_percent(d, share * 100), remark_percent(d, error * 100));
}

/* Adds evidence of the line with most sampled time of a class, if it has that share; its name
 * or NULL. */
static const char *see_hottest(struct remark *d, const struct report *r, enum crema_time_id id,
			       double least, double *share, uint64_t *samples)
{
	const struct line_row *row = lines_hottest(&r->lines, id, REMARK_SAMPLES, share);

	if (!row || *share < least)
		return NULL;
	*samples = row->sum.class_samples[id];
	return remark_see_line(d, row->place, *share, *samples, r->lines.all.class_samples[id]);
}

void remark_line(struct remark *d, const struct report *r, enum crema_time_id id)
{
	double share;
	uint64_t samples;
	const char *name = see_hottest(d, r, id, 0, &share, &samples);

	if (name)
		remark_say_more(d, "; %s of it at %s (%s samples)",
				remark_line_share(d, share, r->lines.all.class_samples[id]),
				remark_name(d, name),
				remark_human(d, value_uint(samples), AS_COUNT));
}

void remark_half(struct remark *d, const struct report *r)
{
	double share;
	uint64_t samples;
	const char *name = see_hottest(d, r, CREMA_T_cpu, 0.5, &share, &samples);

	if (name)
		remark_say_more(
			d, "; %s of the sampled CPU was at %s",
			remark_line_share(d, share, r->lines.all.class_samples[CREMA_T_cpu]),
			remark_name(d, name));
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
