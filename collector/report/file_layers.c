/* SPDX-License-Identifier: BSD-3-Clause */
/* file_layers.c - adds up the layers of a file. */
#include "collector/report/file_layers.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "collector/model/file_place.h"

static bool same(struct value a, struct value b)
{
	return a.type == VALUE_UINT && b.type == VALUE_UINT && a.v.u == b.v.u;
}

static bool has(struct value v, uint64_t n)
{
	return v.type == VALUE_UINT && v.v.u == n;
}

#define TYPE_calls VALUE_UINT, FILE_CELL_NUMBER
#define TYPE_bytes VALUE_UINT, FILE_CELL_NUMBER
#define TYPE_ns VALUE_REAL, FILE_CELL_NS
#define ADD_CELL(name, title, type, from, group, at) {name, title, type, group, from, at},
#define TYPED_CELL(name, title, types, group, at) ADD_CELL(name, title, types, group, at)
#define TEXT_HIDDEN(name, title)
#define TEXT_NAMED(name, title) TEXT_CELL(name, title, FILE_NAMED)
#define TEXT_LAYERED(name, title) TEXT_CELL(name, title, FILE_LAYERED)
#define TEXT_CELL(name, title, group)                                                              \
	ADD_CELL(#name, title, VALUE_TEXT, FILE_CELL_TEXT, group, offsetof(struct file_sum, name))

const struct file_cell file_cells[] = {
#define FILE_TEXT(name, group, title, help) TEXT_##group(name, title)
#define FILE_NUMBER(name, cell, title, unit, group, ...)                                           \
	TYPED_CELL(#cell, title, TYPE_##unit, FILE_##group, offsetof(struct file_sum, name))
#define FILE_MADE(cell, title, type, help)                                                         \
	ADD_CELL(#cell, title, VALUE_##type, FILE_CELL_MADE, FILE_LAYERED,                         \
		 offsetof(struct layer_values, cell))
#include "rows.def"
};
const size_t file_cell_count = sizeof(file_cells) / sizeof(*file_cells);

struct value file_cell_value(const struct file_cell *c, const struct file_sum *f,
			     const struct layer_values *v)
{
	const void *at = (c->from == FILE_CELL_MADE ? (const char *)v : (const char *)f) + c->at;

	if (c->from == FILE_CELL_TEXT)
		return value_text(*(const char *const *)at);
	if (c->from == FILE_CELL_NS)
		return value_seconds(*(const struct value *)at);
	return *(const struct value *)at;
}

int layers_add(struct file_sum *s, const struct file_row *f, bool first)
{
	bool all_read = same(f->extent_bytes, f->read_bytes);
	bool all_baskets = same(f->basket_extent_bytes, f->basket_bytes);
	struct value unique = all_read ? f->unique_bytes : value_null();
	bool differ;

	s->worker_unique_bytes = first ? unique : value_plus(s->worker_unique_bytes, unique);
	/* Extents of another file of that path must not be joined with these. */
	differ = !first && file_may_differ(s->row, s->size_bytes, f);
	s->read_incomplete |= differ || !all_read || !has(f->unique_bytes, f->read.bytes);
	s->baskets_incomplete |=
		differ || !all_baskets || !has(f->unique_basket_bytes, f->baskets.bytes);
	if (ranges_join(&s->read, &f->read) || ranges_join(&s->baskets, &f->baskets))
		return -ENOMEM;
	return opened_add(&s->opened, &f->opened);
}

static int by_read(const void *pa, const void *pb)
{
	const struct opened_line *a = pa, *b = pb;
	double x = value_number(a->read_bytes, NULL), y = value_number(b->read_bytes, NULL);

	return x > y ? -1 : x < y ? 1 : text_order(a->line, b->line);
}

void layers_end(struct file_sum *s)
{
	if (s->opened.n)
		qsort(s->opened.v, s->opened.n, sizeof(*s->opened.v), by_read);
	for (size_t i = 0; s->read_bytes.type == VALUE_NULL && i < s->opened.n; i++) {
		for (size_t k = 0; k < CREMA_OPENED_NUMBERS; k++)
			s->opened.v[i].number[k] = value_null();
	}
}

void layers_release(struct file_sum *s)
{
	ranges_release(&s->read);
	ranges_release(&s->baskets);
	opened_release(&s->opened);
}

#define CELL_calls(v) v
#define CELL_bytes(v) v
#define CELL_ns(v) value_seconds(v)
void file_opened_json(const struct file_sum *f, struct json *j, const char *name)
{
	emit_array(j, name);
	for (size_t i = 0; i < f->opened.n; i++) {
		const struct opened_line *o = &f->opened.v[i];

		emit_object(j, NULL);
		emit_value(j, "line", value_text(o->line));
#define FILE_OPENED(name, cell, unit, help) emit_value(j, #cell, CELL_##unit(o->name));
#include "rows.def"
		emit_end(j);
	}
	emit_end(j);
}

/*
 * For a mapped file it is unknown which bytes were accessed. A server's file has no read
 * calls. If fewer bytes came from there than were used, its requests do not identify the file,
 * or there was a cache.
 */
static struct value amplification(const struct file_sum *f)
{
	bool came, used;

	if (f->read_bytes.type != VALUE_NULL)
		return has(f->mapped_bytes, 0) ? value_ratio(f->read_bytes, f->basket_bytes, 1)
					       : value_null();
	if (value_number(f->network_read_bytes, &came) < value_number(f->basket_bytes, &used) ||
	    !came || !used)
		return value_null();
	return value_ratio(f->network_read_bytes, f->basket_bytes, 1);
}

void layers_values(const struct file_sum *f, struct layer_values *out)
{
	struct value read = f->read_incomplete ? value_null() : value_uint(f->read.bytes);
	struct value baskets = f->baskets_incomplete ? value_null() : value_uint(f->baskets.bytes);
	bool both = !f->read_incomplete && !f->baskets_incomplete;

	out->chunks = value_uint(f->chunks);
	out->requested_bytes = f->requested;
	out->unique_bytes = read;
	out->reread_bytes = value_minus(f->read_bytes, read);
	out->worker_reread_bytes = value_minus(f->read_bytes, f->worker_unique_bytes);
	out->unique_basket_bytes = baskets;
	out->read_basket_bytes =
		both ? value_uint(ranges_common(&f->read, &f->baskets)) : value_null();
	out->outside_basket_bytes = value_minus(read, out->read_basket_bytes);
	out->small_read_bytes = value_minus(f->read_bytes, f->large_read_bytes);
	if (value_number(out->small_read_bytes, NULL) <
	    0) /* a read in progress is in only one of them */
		out->small_read_bytes = value_null();
	out->read_amplification = amplification(f);
	out->opened_at = f->opened.n ? value_text(f->opened.v[0].line) : value_null();
	out->requested_amplification = value_ratio(f->requested, f->basket_bytes, 1);
}
