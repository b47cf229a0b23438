/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emit.h - shared by all outputs: a value that may be unknown, and the sink for text.
 *
 * A value has a type. VALUE_NULL is "unknown": null in JSON, "unknown" in tables. Producers never
 * turn it into 0. Text in a value is borrowed: it must outlive the call that prints it.
 *
 * A sink collects text in a buffer. If `flush` is set, the sink passes it the buffer when it
 * exceeds SINK_CHUNK, so a report of any size needs little memory. `flush` consumes all of it and
 * resets it. The first error (out of memory, a failed flush) sticks in `error` as -errno, and
 * everything after it is dropped. Callers check once, at the end.
 */
#ifndef CREMA_COLLECTOR_EMIT_EMIT_H
#define CREMA_COLLECTOR_EMIT_EMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

#define SINK_CHUNK (1u << 20)

enum value_type { VALUE_NULL = 0, VALUE_UINT, VALUE_INT, VALUE_REAL, VALUE_BOOL, VALUE_TEXT };

struct value {
	enum value_type type;
	union {
		uint64_t u;
		int64_t i;
		double d;
		bool b;
		const char *s;
	} v;
};

struct value value_null(void);
struct value value_uint(uint64_t u);
struct value value_int(int64_t i);
/* Not finite: unknown. */
struct value value_real(double d);
struct value value_bool(bool b);
/* NULL: unknown. */
struct value value_text(const char *s);
/* seconds from nanoseconds, unknown stays unknown */
struct value value_seconds(struct value ns);
/* as a double; `*known`: whether there is one */
double value_number(struct value v, bool *known);
/* a / b * factor; unknown if either is or b is 0 */
struct value value_ratio(struct value a, struct value b, double factor);
/* The rest of a whole: 0 if it is below 1 % of the whole, by which clocks differ. */
struct value value_rest(struct value rest, struct value whole);
/* a - b as a signed integer; unknown if either is */
struct value value_minus(struct value a, struct value b);
/* a + b; unsigned if both are; unknown if either is */
struct value value_plus(struct value a, struct value b);

/* The larger one; unknown if either is */
struct value value_larger(struct value a, struct value b);
/* As strcmp(), for names that may be unknown: those come first. */
int text_order(const char *a, const char *b);

struct sink {
	struct buf *out;
	int (*flush)(struct buf *out, void *arg);
	void *arg;
	int error;
	unsigned int width; /* columns of the terminal; 0: the usual 80 */
};

/* Columns that a line may fill: one less than the width, within limits. */
size_t sink_columns(const struct sink *s);
/* The same for prose, which is hard to read in long lines. */
size_t sink_prose_columns(const struct sink *s);

void sink_put(struct sink *s, const char *text, size_t n);
/* Returns room for n bytes at the sink's end, to be filled in place; sink_take() gets the end of
 * the written part. NULL after an error. */
char *sink_more_room(struct sink *s, size_t n);
static inline char *sink_room(struct sink *s, size_t n)
{
	const struct buf *b = s->out;

	if (__builtin_expect(s->error || b->error || n > b->cap - b->len, 0))
		return sink_more_room(s, n);
	return (char *)b->data + b->len;
}
void sink_flush(struct sink *s);
static inline void sink_take(struct sink *s, const char *end)
{
	s->out->len = (size_t)(end - (char *)s->out->data);
	if (s->flush && s->out->len >= SINK_CHUNK)
		sink_flush(s);
}
void sink_puts(struct sink *s, const char *text);
__attribute__((format(printf, 2, 3))) void sink_printf(struct sink *s, const char *fmt, ...);
/* The same numbers, written to a buffer of NUMBER_ROOM bytes; return the end. */
#define NUMBER_ROOM 32
char *number_uint(char *to, uint64_t v);
char *number_real(char *to, double v);
void sink_uint(struct sink *s, uint64_t v);
/* The shortest decimal number that reads back as this double; nan and inf as in C. */
void sink_real(struct sink *s, double v);
/* A line of the Prometheus text format: NAME VALUE. */
void sink_sample(struct sink *s, const char *name, double v);
/* Flushes the rest; returns 0 or the first error. */
int sink_end(struct sink *s);
/* A flush to a file: writes all of `out` and empties it. 0 or -errno. */
int sink_write(int fd, struct buf *out);

#endif
