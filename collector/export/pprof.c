/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pprof.c - sampled stacks as a profile for pprof and the viewers that read its format.
 *
 * The format is a gzip'd protocol buffer: profile.proto of github.com/google/pprof. Messages are
 * written as they are found, so ids and texts get their numbers on first use. A frame is a location
 * with one line; pprof itself merges functions of equal name and file.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "collector/emit/gzip.h"
#include "collector/export/atomic_file.h"
#include "collector/export/export.h"
#include "collector/report/lines.h"
#include "common/rows.h"
#include "common/table.h"
#include "common/utf8.h"

enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

/* Field numbers in profile.proto. */
enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT };
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT };
enum { LOCATION_ID = 1, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_NUMBER };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE };
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION,
	PROFILE_TEXT,
	PROFILE_TIME_NS = 9,
	PROFILE_DURATION_NS,
	PROFILE_PERIOD_TYPE,
	PROFILE_PERIOD,
	PROFILE_DEFAULT_TYPE = 14
};

/* Numbers pairs from 1 in the order of their first use. */
struct ids {
	struct table table;
	uint64_t n;
};

struct id {
	uint64_t a, b, number;
};

struct profile {
	struct buf out, message, inner; /* message, inner: the message being written */
	struct arena arena;
	struct ids texts, functions, locations;
};

static void put_varint(struct buf *b, uint64_t v)
{
	unsigned char byte[10];
	size_t n = 0;

	for (; v > 127; v >>= 7)
		byte[n++] = (unsigned char)(v | 128);
	byte[n++] = (unsigned char)v;
	buf_add(b, byte, n);
}

static void put_number(struct buf *b, unsigned int field, uint64_t v)
{
	put_varint(b, field << 3 | WIRE_VARINT);
	put_varint(b, v);
}

static void put_bytes(struct buf *b, unsigned int field, const void *p, size_t n)
{
	put_varint(b, field << 3 | WIRE_BYTES);
	put_varint(b, n);
	buf_add(b, p, n);
}

/* Appends `from` as one message, and empties it. */
static void put_message(struct buf *b, unsigned int field, struct buf *from)
{
	put_bytes(b, field, from->data, from->len);
	if (from->error)
		b->error = from->error;
	buf_clear(from);
}

static bool same_pair(const void *item, const void *key)
{
	const struct id *x = item, *y = key;

	return x->a == y->a && x->b == y->b;
}

/* The pair's number; *fresh: it is new. 0 without memory. */
static uint64_t number_of(struct profile *p, struct ids *ids, uint64_t a, uint64_t b, bool *fresh)
{
	struct id key = {a, b, 0}, *id;
	uint64_t hash = hash_pair(a, b);

	id = table_find(&ids->table, hash, same_pair, &key);
	*fresh = !id;
	if (id)
		return id->number;
	id = arena_get(&p->arena, sizeof(*id));
	if (!id || table_add(&ids->table, hash, id)) {
		p->out.error = -ENOMEM;
		return 0;
	}
	*id = (struct id){a, b, ++ids->n};
	return id->number;
}

/* Equal addresses mean equal texts; 0 is the empty text. */
static uint64_t text_of(struct profile *p, const char *text)
{
	uint64_t number;
	bool fresh;

	if (!text || !*text)
		return 0;
	number = number_of(p, &p->texts, (uintptr_t)text, 0, &fresh);
	if (fresh) {
		utf8_add(&p->inner, text, strlen(text));
		put_message(&p->out, PROFILE_TEXT, &p->inner);
	}
	return number;
}

static uint64_t function_of(struct profile *p, const char *name, const char *file)
{
	uint64_t name_text = text_of(p, name ? name : "?"), file_text = text_of(p, file), number;
	bool fresh;

	number = number_of(p, &p->functions, name_text, file_text, &fresh);
	if (fresh) {
		put_number(&p->inner, FUNCTION_ID, number);
		put_number(&p->inner, FUNCTION_NAME, name_text);
		put_number(&p->inner, FUNCTION_SYSTEM_NAME, name_text);
		put_number(&p->inner, FUNCTION_FILE, file_text);
		put_message(&p->out, PROFILE_FUNCTION, &p->inner);
	}
	return number;
}

static uint64_t location_of(struct profile *p, const char *name, const char *file, uint64_t line)
{
	uint64_t function = function_of(p, name, file), number;
	struct buf message = BUF_INIT;
	bool fresh;

	number = number_of(p, &p->locations, function, line, &fresh);
	if (fresh) {
		put_number(&p->inner, LINE_FUNCTION, function);
		put_number(&p->inner, LINE_NUMBER, line);
		put_number(&message, LOCATION_ID, number);
		put_message(&message, LOCATION_LINE, &p->inner);
		put_message(&p->out, PROFILE_LOCATION, &message);
	}
	buf_release(&message);
	return number;
}

static void put_label(struct profile *p, const char *key, const char *text)
{
	uint64_t key_text = text_of(p, key), value = text_of(p, text);

	put_number(&p->inner, LABEL_KEY, key_text);
	put_number(&p->inner, LABEL_TEXT, value);
	put_message(&p->message, SAMPLE_LABEL, &p->inner);
}

static uint64_t to_ns(double seconds)
{
	return (uint64_t)llround(fmax(0, seconds) * 1e9);
}

/* Of one worker; innermost frame first, the kind of task is the outermost. */
static void put_stack(struct profile *p, const struct report *report,
		      const struct line_stack_row *r, const struct line_stack *part)
{
	const struct run *run = report->run;
	struct line_sum sum = {.samples = 0};
	const char *prefix = run_prefix_shown(run, r->prefix);
	struct buf list = BUF_INIT;

	for (uint32_t i = 0; i < r->list->depth; i++) {
		const struct line_place *at = r->list->place[i];

		put_varint(&list, location_of(p, at->function, at->file, at->line));
	}
	if (r->why)
		put_varint(&list, location_of(p, "(no stack)", NULL, 0));
	if (r->pool)
		put_varint(&list, location_of(p, "(pool thread)", NULL, 0));
	put_varint(&list, location_of(p, prefix ? prefix : "(unknown task)", NULL, 0));
	put_message(&p->message, SAMPLE_LOCATIONS, &list);
	lines_add_part(&report->lines, part, &sum);
	put_varint(&list, sum.samples);
	for (unsigned int k = 0; k < LINE_CLASSES_TOLD; k++)
		put_varint(&list, to_ns(sum.class_s[k]));
	put_varint(&list, to_ns(sum.held_s));
	for (unsigned int k = 0; k < CREMA_LINES_BYTES; k++)
		put_varint(&list, sum.bytes[k]);
	for (unsigned int k = 0; k < CREMA_LINES_LARGE; k++)
		if (*row_line_large[k].shown)
			put_varint(&list, sum.large[k] > 0 ? (uint64_t)sum.large[k] : 0);
	put_message(&p->message, SAMPLE_VALUES, &list);
	buf_release(&list);
	put_label(p, "task", prefix);
	put_label(p, "thread", line_thread_name(r));
	if (r->dataset)
		put_label(p, "dataset", r->dataset);
	put_label(p, "worker", part->worker->label);
	put_message(&p->out, PROFILE_SAMPLE, &p->message);
}

static void put_type(struct profile *p, unsigned int field, const char *type, const char *unit)
{
	uint64_t type_text = text_of(p, type), unit_text = text_of(p, unit);

	put_number(&p->inner, VALUE_TYPE_TYPE, type_text);
	put_number(&p->inner, VALUE_TYPE_UNIT, unit_text);
	put_message(&p->out, field, &p->inner);
}

static void put_profile(struct profile *p, const struct report *r)
{
	const struct lines *l = &r->lines;

	put_bytes(&p->out, PROFILE_TEXT, "", 0); /* required by the format */
	put_type(p, PROFILE_SAMPLE_TYPE, "samples", "count");
	for (unsigned int k = 0; k < LINE_CLASSES_TOLD; k++)
		put_type(p, PROFILE_SAMPLE_TYPE, k < CREMA_TIMES ? row_times[k].id : "other",
			 "nanoseconds");
	put_type(p, PROFILE_SAMPLE_TYPE, "held_gil", "nanoseconds");
	for (unsigned int k = 0; k < CREMA_LINES_BYTES; k++)
		put_type(p, PROFILE_SAMPLE_TYPE, row_line_bytes[k].counted, "bytes");
	for (unsigned int k = 0; k < CREMA_LINES_LARGE; k++)
		if (*row_line_large[k].shown)
			put_type(p, PROFILE_SAMPLE_TYPE, row_line_large[k].id, "bytes");
	put_number(&p->out, PROFILE_DEFAULT_TYPE, text_of(p, row_times[CREMA_T_cpu].id));
	for (size_t i = 0; i < l->stacks.n; i++)
		for (size_t k = 0; k < l->stacks.v[i]->parts.n; k++)
			put_stack(p, r, l->stacks.v[i], l->stacks.v[i]->parts.v[k]);
	if (l->all.samples) {
		put_type(p, PROFILE_PERIOD_TYPE, "wall", "nanoseconds");
		put_number(&p->out, PROFILE_PERIOD, to_ns(l->all.seconds / (double)l->all.samples));
	}
	if (!isnan(r->run->start)) {
		put_number(&p->out, PROFILE_TIME_NS, to_ns(r->run->start));
		put_number(&p->out, PROFILE_DURATION_NS, to_ns(r->run->wall));
	}
}

int export_pprof(const struct report *r, const char *path, struct buf *why)
{
	struct profile p;
	struct buf packed = BUF_INIT;
	struct atomic_file d;

	memset(&p, 0, sizeof(p));
	put_profile(&p, r);
	atomic_file_init(&d, path);
	if (p.out.error || gzip_whole(&p.out, &packed))
		d.sink.error = -ENOMEM;
	else
		sink_put(&d.sink, (const char *)packed.data, packed.len);
	buf_release(&packed);
	buf_release(&p.out);
	buf_release(&p.message);
	buf_release(&p.inner);
	table_release(&p.texts.table);
	table_release(&p.functions.table);
	table_release(&p.locations.table);
	arena_release(&p.arena);
	return atomic_file_end(&d, why);
}
