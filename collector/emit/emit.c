/* SPDX-License-Identifier: BSD-3-Clause */
/* emit.c - values that may be unknown, and the text sink. */
#include "collector/emit/emit.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct value value_null(void)
{
	return (struct value){.type = VALUE_NULL};
}

struct value value_uint(uint64_t u)
{
	return (struct value){.type = VALUE_UINT, .v.u = u};
}

struct value value_int(int64_t i)
{
	return (struct value){.type = VALUE_INT, .v.i = i};
}

struct value value_real(double d)
{
	if (!isfinite(d))
		return value_null();
	return (struct value){.type = VALUE_REAL, .v.d = d};
}

struct value value_bool(bool b)
{
	return (struct value){.type = VALUE_BOOL, .v.b = b};
}

struct value value_text(const char *s)
{
	if (!s)
		return value_null();
	return (struct value){.type = VALUE_TEXT, .v.s = s};
}

double value_number(struct value v, bool *known)
{
	if (known)
		*known = true;
	switch (v.type) {
	case VALUE_UINT:
		return (double)v.v.u;
	case VALUE_INT:
		return (double)v.v.i;
	case VALUE_REAL:
		return v.v.d;
	case VALUE_BOOL:
		return v.v.b;
	default:
		if (known)
			*known = false;
		return 0;
	}
}

struct value value_seconds(struct value ns)
{
	bool known;
	double d = value_number(ns, &known);

	return known ? value_real(d / 1e9) : value_null();
}

struct value value_ratio(struct value a, struct value b, double factor)
{
	bool known_a, known_b;
	double x = value_number(a, &known_a), y = value_number(b, &known_b);

	if (!known_a || !known_b || y == 0)
		return value_null();
	return value_real(x / y * factor);
}

struct value value_rest(struct value rest, struct value whole)
{
	bool known;
	double percent = value_number(value_ratio(rest, whole, 100), &known);

	return known && fabs(percent) < 1 ? value_uint(0) : rest;
}

static bool is_whole(struct value v)
{
	return v.type == VALUE_UINT || v.type == VALUE_INT;
}

struct value value_minus(struct value a, struct value b)
{
	bool known_a, known_b;
	double x, y;

	if (is_whole(a) && is_whole(b)) /* two's complement: i equals u if both fit */
		return value_int((int64_t)(a.v.u - b.v.u));
	x = value_number(a, &known_a);
	y = value_number(b, &known_b);
	return known_a && known_b ? value_real(x - y) : value_null();
}

struct value value_plus(struct value a, struct value b)
{
	bool known_a, known_b;
	double x, y;

	if (a.type == VALUE_UINT && b.type == VALUE_UINT)
		return value_uint(a.v.u + b.v.u);
	if (is_whole(a) && is_whole(b))
		return value_int((int64_t)(a.v.u + b.v.u));
	x = value_number(a, &known_a);
	y = value_number(b, &known_b);
	return known_a && known_b ? value_real(x + y) : value_null();
}

void sink_flush(struct sink *s)
{
	if (s->error)
		return;
	s->error = s->flush(s->out, s->arg);
}

char *sink_more_room(struct sink *s, size_t n)
{
	if (!s->error)
		s->error = buf_reserve(s->out, n);
	return s->error ? NULL : (char *)s->out->data + s->out->len;
}

#define USUAL_COLUMNS 80
#define LEAST_COLUMNS 40
#define MOST_COLUMNS 400
#define PROSE_COLUMNS 100

size_t sink_columns(const struct sink *s)
{
	size_t n = s->width ? s->width : USUAL_COLUMNS;

	return (n < LEAST_COLUMNS ? LEAST_COLUMNS : n > MOST_COLUMNS ? MOST_COLUMNS : n) - 1;
}

size_t sink_prose_columns(const struct sink *s)
{
	size_t n = sink_columns(s);

	return n < PROSE_COLUMNS ? n : PROSE_COLUMNS;
}

void sink_put(struct sink *s, const char *text, size_t n)
{
	char *room = n ? sink_room(s, n) : NULL;

	if (!room)
		return;
	memcpy(room, text, n);
	sink_take(s, room + n);
}

void sink_puts(struct sink *s, const char *text)
{
	sink_put(s, text, strlen(text));
}

void sink_printf(struct sink *s, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	sink_put(s, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

int sink_end(struct sink *s)
{
	if (s->flush)
		sink_flush(s);
	return s->error;
}

int sink_write(int fd, struct buf *out)
{
	size_t at = 0;
	ssize_t n;

	while (at < out->len) {
		n = write(fd, out->data + at, out->len - at);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			at += (size_t)n;
	}
	buf_clear(out);
	return 0;
}

int text_order(const char *a, const char *b)
{
	if (a == b)
		return 0;
	return !a ? -1 : !b ? 1 : strcmp(a, b);
}

struct value value_larger(struct value a, struct value b)
{
	bool a_known, b_known;
	double x = value_number(a, &a_known), y = value_number(b, &b_known);

	if (!a_known || !b_known)
		return value_null();
	return x > y ? a : b;
}
