/* SPDX-License-Identifier: BSD-3-Clause */
/* collapsed.c - sampled stacks in the format of flamegraph.pl and speedscope: one per line, frames
 * from the outermost on separated by ';', a blank, and the weight in microseconds or bytes. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "collector/export/atomic_file.h"
#include "collector/export/export.h"
#include "collector/report/lines.h"
#include "common/rows.h"

/* Names are hostile: no part of them ends a frame or a line. */
static void put_name(struct sink *s, const char *name)
{
	char text[512];
	size_t n = 0;

	for (; name && *name && n < sizeof(text) - 1; name++)
		text[n++] = *name == ';'				? ':'
			    : (unsigned char)*name < 32 || *name == 127 ? '?'
									: *name;
	text[n] = '\0';
	sink_puts(s, n ? text : "?");
}

static void put_stack(struct sink *s, const struct run *run, const struct line_stack_row *r,
		      const char *class, double amount)
{
	const char *prefix = run_prefix_shown(run, r->prefix);
	char number[32];

	put_name(s, prefix ? prefix : "(unknown task)");
	if (r->pool)
		sink_puts(s, ";(pool thread)");
	if (r->why)
		sink_puts(s, ";(no stack)");
	for (uint32_t i = r->list->depth; i > 0; i--) {
		const struct line_place *p = r->list->place[i - 1];

		sink_puts(s, ";");
		put_name(s, p->function);
		sink_puts(s, " (");
		put_name(s, p->file);
		snprintf(number, sizeof(number), ":%" PRIu64 ")", p->line);
		sink_puts(s, number);
	}
	sink_puts(s, ";[");
	sink_puts(s, class);
	snprintf(number, sizeof(number), "] %.0f\n", fmax(1, amount));
	sink_puts(s, number);
}

int export_collapsed(const struct report *r, const char *path, struct buf *why)
{
	struct atomic_file d;

	atomic_file_init(&d, path);
	for (size_t i = 0; i < r->lines.stacks.n; i++) {
		const struct line_stack_row *row = r->lines.stacks.v[i];

		for (unsigned int k = 0; k < LINE_CLASSES_TOLD; k++)
			if (row->sum.class_s[k] > 0)
				put_stack(&d.sink, r->run, row,
					  k < CREMA_TIMES ? row_times[k].id : "other",
					  row->sum.class_s[k] * 1e6);
	}
	return atomic_file_end(&d, why);
}

int export_collapsed_bytes(const struct report *r, const char *path, struct buf *why)
{
	struct atomic_file d;

	atomic_file_init(&d, path);
	for (size_t i = 0; i < r->lines.stacks.n; i++) {
		const struct line_stack_row *row = r->lines.stacks.v[i];

		for (unsigned int k = 0; k < CREMA_LINES_BYTES; k++)
			if (row->sum.bytes[k])
				put_stack(&d.sink, r->run, row, row_line_bytes[k].id,
					  (double)row->sum.bytes[k]);
		for (unsigned int k = 0; k < CREMA_LINES_LARGE; k++)
			if (*row_line_large[k].shown && row->sum.large[k] > 0)
				put_stack(&d.sink, r->run, row, row_line_large[k].id,
					  (double)row->sum.large[k]);
	}
	return atomic_file_end(&d, why);
}
