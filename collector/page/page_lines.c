/* SPDX-License-Identifier: BSD-3-Clause */
/* page_lines.c - sampled stacks for the flame graph, with frames by number, outermost first; and
 * user code with the time of each line. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "collector/page/page.h"
#include "collector/report/source.h"
#include "common/dirs.h"
#include "common/rows.h"

static const char *frame_text(const struct line_place *p, char out[PAGE_NAME_BYTES])
{
	snprintf(out, PAGE_NAME_BYTES, "%.60s (%.40s:%" PRIu64 ")", p->function ? p->function : "?",
		 dirs_base(p->file, "?"), p->line);
	return out;
}

/* There are few frames but many stacks: each frame's text is sent once. */
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
	emit_array(j, "seconds"); /* by time class, the unclassified part last */
	for (unsigned int i = 0; i < LINE_CLASSES_TOLD; i++)
		emit_value(j, NULL, value_real(s->class_s[i]));
	emit_end(j);
}

static void put_sum(struct json *j, const struct line_sum *s)
{
	emit_value(j, "samples", value_uint(s->samples));
	put_classes(j, s);
	emit_array(j, "class_samples");
	for (unsigned int i = 0; i < LINE_CLASSES_TOLD; i++)
		emit_value(j, NULL, value_uint(s->class_samples[i]));
	emit_end(j);
	emit_value(j, "held_seconds", value_real(s->held_s));
	emit_value(j, "held_samples", value_uint(s->held_samples));
	emit_array(j, "bytes"); /* by kind: bytes, samples, variance */
	for (unsigned int i = 0; i < CREMA_LINES_BYTES; i++) {
		emit_array(j, NULL);
		emit_value(j, NULL, value_uint(s->bytes[i]));
		emit_value(j, NULL, value_uint(s->byte_samples[i]));
		emit_value(j, NULL, value_real(s->byte_variance[i]));
		emit_end(j);
	}
	emit_end(j);
	emit_array(j, "memory"); /* by kind, exact; null: not recorded */
	for (unsigned int i = 0; i < CREMA_LINES_LARGE; i++)
		if (*row_line_large[i].shown)
			emit_value(j, NULL, line_large(s, i));
	emit_end(j);
}

static void put_memories(const struct lines *l, struct json *j)
{
	emit_array(j, "memories"); /* the kinds of memory */
	for (unsigned int i = 0; i < CREMA_LINES_LARGE; i++)
		if (*row_line_large[i].shown)
			emit_value(j, NULL, value_text(row_line_large[i].shown));
	emit_end(j);
	emit_value(j, "memory_least_bytes",
		   l->large_workers ? value_uint(l->large_bytes) : value_null());
}

static void put_kinds(struct json *j)
{
	emit_array(j, "kinds"); /* of bytes */
	for (unsigned int i = 0; i < CREMA_LINES_BYTES; i++) {
		emit_object(j, NULL);
		emit_value(j, "name", value_text(row_line_bytes[i].shown));
		emit_value(j, "wait", value_uint(row_line_bytes[i].wait));
		emit_end(j);
	}
	emit_end(j);
}

/* Workers with a separate part of each stack, busiest first; none if there is only one worker. */
struct told {
	const struct worker *worker;
	double seconds;
};

static int busiest_first(const void *pa, const void *pb)
{
	const struct told *a = pa, *b = pb;

	if (a->seconds != b->seconds)
		return a->seconds > b->seconds ? -1 : 1;
	return text_order(a->worker->label, b->worker->label);
}

/* Seconds by the worker's index in the model; NULL: no memory. */
static double *worker_seconds(const struct report *r)
{
	double *seconds = calloc(r->run->model->workers.n + 1, sizeof(*seconds));

	for (size_t i = 0; seconds && i < r->lines.stacks.n; i++) {
		const struct line_stack_row *row = r->lines.stacks.v[i];

		for (size_t k = 0; k < row->parts.n; k++) {
			struct line_sum sum = {.samples = 0};

			lines_add_part(&r->lines, row->parts.v[k], &sum);
			seconds[row->parts.v[k]->worker->place] += sum.seconds;
		}
	}
	return seconds;
}

/* How many were sampled; all of the run's are in `workers`. */
static size_t sampled_workers(const struct report *r, struct told *workers)
{
	double *seconds = worker_seconds(r);
	size_t n = 0;

	for (size_t i = 0; seconds && i < r->run->workers.n; i++)
		workers[i] =
			(struct told){r->run->workers.v[i], seconds[r->run->workers.v[i]->place]};
	if (seconds)
		qsort(workers, r->run->workers.n, sizeof(*workers), busiest_first);
	while (n < r->run->workers.n && workers[n].seconds > 0)
		n++;
	free(seconds);
	return n;
}

static bool is_shown(const struct line_sum *s)
{
	uint64_t n = s->samples + s->held_samples + (uint64_t)s->large[CREMA_LINES_L_allocations];

	for (unsigned int i = 0; i < CREMA_LINES_BYTES; i++)
		n += s->byte_samples[i];
	return n != 0;
}

static void put_parts(const struct report *r, const struct line_stack_row *row,
		      const struct told *workers, size_t n, struct json *j)
{
	emit_array(j, "parts");
	for (size_t w = 0; w < n; w++) {
		struct line_sum sum = {.samples = 0};

		for (size_t k = 0; k < row->parts.n; k++)
			if (row->parts.v[k]->worker == workers[w].worker)
				lines_add_part(&r->lines, row->parts.v[k], &sum);
		if (!is_shown(&sum))
			continue;
		emit_object(j, NULL);
		emit_value(j, "worker", value_uint(w));
		put_sum(j, &sum);
		emit_end(j);
	}
	emit_end(j);
}

static void put_stack(const struct report *r, const struct line_stack_row *row, struct frames *f,
		      struct json *j)
{
	size_t n;

	page_name(j, "prefix", run_prefix_shown(r->run, row->prefix));
	page_name(j, "dataset", row->dataset);
	emit_value(j, "pool", value_bool(row->pool));
	emit_value(j, "without", value_text(row->why));
	put_sum(j, &row->sum);
	emit_array(j, "frames");
	for (uint32_t i = row->list->depth; i > 0; i--) {
		n = number_of(f, row->list->place[i - 1]);
		if (n == SIZE_MAX)
			j->sink->error = -ENOMEM;
		else
			emit_value(j, NULL, value_uint(n));
	}
	emit_end(j);
}

static void put_rows(const struct report *r, struct frames *f, struct json *j)
{
	struct told *workers = calloc(r->run->workers.n + 1, sizeof(*workers));
	size_t sampled = workers ? sampled_workers(r, workers) : 0;
	size_t told = sampled < 2 ? 0 : sampled < PAGE_FLAME_WORKERS ? sampled : PAGE_FLAME_WORKERS;

	if (!workers)
		j->sink->error = -ENOMEM;
	emit_array(j, "rows");
	for (size_t i = 0; i < r->lines.stacks.n && i < PAGE_STACKS; i++) {
		emit_object(j, NULL);
		put_stack(r, r->lines.stacks.v[i], f, j);
		put_parts(r, r->lines.stacks.v[i], workers, told, j);
		emit_end(j);
	}
	emit_end(j);
	emit_array(j, "workers");
	for (size_t i = 0; i < told; i++)
		page_name(j, NULL, workers[i].worker->label);
	emit_end(j);
	emit_value(j, "sampled_workers", value_uint(sampled));
	free(workers);
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
	put_kinds(j);
	put_memories(l, j);
	put_rows(r, &f, j);
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
		if (row->function)
			put_sum(j, &row->sum);
		if (row->read && row->read->opened.line)
			emit_value(j, "opened_bytes", row->read->opened.read_bytes);
		if (row->read && read_line_asked(row->read)) {
			emit_value(j, "read_bytes", column_bytes(row->read->number));
			emit_value(j, "decompress_cpu_seconds",
				   value_seconds(row->read->decompress_cpu_ns));
		}
		emit_end(j);
	}
	emit_end(j);
	emit_end(j);
}

void page_source(const struct report *r, struct json *j)
{
	struct source s;

	if (source_gather(&s, &r->lines, &r->read_lines, r->run))
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
