/* SPDX-License-Identifier: BSD-3-Clause */
/* page_lines.c - sampled stacks for the flame graph, with frames by number, outermost first; and
 * the user's code with the time of each line. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "collector/page/page.h"
#include "collector/report/source.h"
#include "common/dirs.h"

static const char *frame_text(const struct line_place *p, char out[PAGE_NAME_BYTES])
{
	snprintf(out, PAGE_NAME_BYTES, "%.60s (%.40s:%" PRIu64 ")", p->function ? p->function : "?",
		 dirs_base(p->file, "?"), p->line);
	return out;
}

/* Frames are few, however many stacks: each has its text once. */
struct frames {
	const struct line_place **v;
	size_t n, cap;
};

static size_t number_of(struct frames *f, const struct line_place *p)
{
	const struct line_place **at;

	for (size_t i = f->n; i > 0; i--)
		if (f->v[i - 1] == p)
			return i - 1;
	at = ARRAY_NEW(f);
	if (!at)
		return SIZE_MAX;
	*at = p;
	return f->n - 1;
}

static void put_classes(struct json *j, const struct line_sum *s)
{
	emit_array(j, "seconds"); /* by class of time, what is in none last */
	for (unsigned int i = 0; i < LINE_CLASSES_TOLD; i++)
		emit_value(j, NULL, value_real(s->class_s[i]));
	emit_end(j);
}

static void put_stack(const struct run *run, const struct line_stack_row *r, struct frames *f,
		      struct json *j)
{
	size_t n;

	emit_object(j, NULL);
	page_name(j, "prefix", run_prefix_shown(run, r->prefix));
	emit_value(j, "pool", value_bool(r->pool));
	emit_value(j, "held_seconds", value_real(r->sum.held_s));
	emit_value(j, "held_samples", value_uint(r->sum.held_samples));
	emit_value(j, "without", value_text(r->why));
	emit_value(j, "samples", value_uint(r->sum.samples));
	put_classes(j, &r->sum);
	emit_array(j, "class_samples");
	for (unsigned int i = 0; i < LINE_CLASSES_TOLD; i++)
		emit_value(j, NULL, value_uint(r->sum.class_samples[i]));
	emit_end(j);
	emit_array(j, "frames");
	for (uint32_t i = r->list->depth; i > 0; i--) {
		n = number_of(f, r->list->place[i - 1]);
		if (n == SIZE_MAX)
			j->sink->error = -ENOMEM;
		else
			emit_value(j, NULL, value_uint(n));
	}
	emit_end(j);
	emit_end(j);
}

void page_lines(const struct report *r, struct json *j)
{
	const struct lines *l = &r->lines;
	struct frames f = {NULL, 0, 0};
	char text[PAGE_NAME_BYTES];

	emit_object(j, "stacks");
	emit_value(j, "samples", value_uint(l->all.samples + l->pool.samples));
	emit_value(j, "seconds", value_real(l->all.seconds));
	emit_value(j, "wall_seconds", tally_wall(&r->facts->all));
	emit_value(j, "total", value_uint(l->stacks.n));
	emit_array(j, "rows");
	for (size_t i = 0; i < l->stacks.n && i < PAGE_STACKS; i++)
		put_stack(r->run, l->stacks.v[i], &f, j);
	emit_end(j);
	emit_array(j, "frames");
	for (size_t i = 0; i < f.n; i++) {
		emit_object(j, NULL);
		emit_value(j, "text", value_text(frame_text(f.v[i], text)));
		emit_value(j, "user", value_bool(f.v[i]->user));
		emit_end(j);
	}
	emit_end(j);
	emit_end(j);
	free(f.v);
}

static void put_file(const struct source_file *f, struct json *j)
{
	emit_object(j, NULL);
	page_name(j, "file", f->file);
	emit_value(j, "without", value_text(f->why));
	emit_value(j, "changed", value_bool(f->changed));
	emit_value(j, "left_out", value_uint(f->left_out));
	emit_array(j, "rows");
	for (size_t i = 0; i < f->n; i++) {
		const struct source_row *row = &f->v[i];

		emit_object(j, NULL);
		emit_value(j, "line", value_uint(row->line));
		emit_value(j, "gap", value_bool(row->gap));
		emit_value(j, "text", value_text(row->text));
		emit_value(j, "function", value_text(row->function));
		if (row->function) {
			emit_value(j, "samples", value_uint(row->sum.samples));
			emit_value(j, "held_seconds", value_real(row->sum.held_s));
			put_classes(j, &row->sum);
		}
		emit_end(j);
	}
	emit_end(j);
	emit_end(j);
}

void page_source(const struct report *r, struct json *j)
{
	struct source s;

	if (source_gather(&s, &r->lines, r->run))
		j->sink->error = -ENOMEM;
	emit_object(j, "source");
	emit_value(j, "seconds", value_real(r->lines.all.seconds));
	emit_value(j, "samples", value_uint(r->lines.all.samples));
	emit_value(j, "left_out", value_uint(s.left_out));
	emit_array(j, "files");
	for (size_t i = 0; i < s.files.n; i++)
		put_file(&s.files.v[i], j);
	emit_end(j);
	emit_end(j);
	source_release(&s);
}
