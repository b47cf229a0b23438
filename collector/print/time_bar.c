/* SPDX-License-Identifier: BSD-3-Clause */
/* time_bar.c - see time_bar.h. */
#include "collector/print/time_bar.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/emit/emit_text.h"
#include "collector/metrics/budget.h"
#include "common/rows.h"

#define ROWS (CREMA_TIMES + 3)
#define MOST_LINES 3
#define LEAST_PERCENT 1 /* less is not in the legend; of "not classified" it is noise */

struct row {
	const char *name, *style;
	char mark;
	double seconds;
	double exact; /* of the bar's columns */
	size_t columns;
};

static const char *const styles[CREMA_TIMES] = {
	[CREMA_T_cpu] = "\033[32m",	     [CREMA_T_runqueue] = "\033[33m",
	[CREMA_T_gil_wait] = "\033[35m",     [CREMA_T_lock_wait] = "\033[35m",
	[CREMA_T_storage_wait] = "\033[34m",
};
#define OTHER_STYLE "\033[36m"

static void name_rows(struct row v[ROWS])
{
	for (size_t i = 0; i < CREMA_TIMES; i++)
		v[i] = (struct row){.name = row_times[i].part,
				    .style = styles[i] ? styles[i] : OTHER_STYLE,
				    .mark = row_times[i].mark};
	v[CREMA_TIMES] = (struct row){"not classified", "\033[31m", '?', 0, 0, 0};
	v[CREMA_TIMES + 1] = (struct row){"not measured", "\033[31m", 'u', 0, 0, 0};
	v[CREMA_TIMES + 2] = (struct row){"no task", "\033[2m", '.', 0, 0, 0};
}

static int by_seconds(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;
	bool last_a = a->mark == '.', last_b = b->mark == '.';

	if (last_a != last_b)
		return last_a - last_b;
	return a->seconds > b->seconds ? -1 : a->seconds < b->seconds;
}

static int by_size(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;
	double size_a = fabs(a->seconds), size_b = fabs(b->seconds);

	return size_a > size_b ? -1 : size_a < size_b;
}

/* Columns that add up to `width`: the rows that lost most by rounding down get one more. */
static void share_columns(struct row *v, size_t n, size_t width)
{
	size_t i, most, left = width;
	double whole = 0;

	for (i = 0; i < n; i++) /* differences between clocks may be negative */
		whole += fmax(v[i].seconds, 0);
	for (i = 0; i < n; i++) {
		v[i].exact = fmax(v[i].seconds, 0) / whole * (double)width;
		v[i].columns = (size_t)v[i].exact;
		left -= v[i].columns < left ? v[i].columns : left;
	}
	for (; left; left--) {
		for (i = 1, most = 0; i < n; i++) {
			if (v[i].exact - (double)v[i].columns >
			    v[most].exact - (double)v[most].columns)
				most = i;
		}
		v[most].columns++;
	}
}

static void put_bar(const struct row *v, size_t n, struct sink *s, bool colour)
{
	size_t i, k;

	sink_puts(s, "  ");
	for (i = 0; i < n; i++) {
		if (!v[i].columns)
			continue;
		if (colour)
			sink_puts(s, v[i].style);
		for (k = 0; k < v[i].columns; k++)
			sink_put(s, &v[i].mark, 1);
		if (colour)
			sink_puts(s, "\033[0m");
	}
	sink_puts(s, "\n");
}

/* "# CPU 54 % (6.734 s)   = waiting for a CPU 37 % (4.579 s)", as many per line as fit. */
static void put_legend(const struct row *v, size_t n, double whole, struct sink *s)
{
	char item[120], seconds[HUMAN_BYTES];
	size_t i, at = 0, width, lines = 1;

	for (i = 0; i < n; i++) {
		if (fabs(v[i].seconds / whole * 100) < LEAST_PERCENT)
			continue;
		snprintf(item, sizeof(item), "%c %s %.0f %% (%s)", v[i].mark, v[i].name,
			 v[i].seconds / whole * 100,
			 human(value_real(v[i].seconds), AS_SECONDS, seconds));
		width = strlen(item);
		if (at && at + 3 + width > sink_columns(s)) {
			if (lines++ == MOST_LINES)
				break;
			sink_puts(s, "\n");
			at = 0;
		}
		sink_printf(s, "%*s%s", at ? 3 : 2, "", item);
		at += (at ? 3 : 2) + width;
	}
	sink_puts(s, "\n");
}

/* Collects the budget's parts, or the time of all tasks if there is no budget; returns the sum. */
static double collect(const struct facts *f, const struct budget *b, struct row *v)
{
	double sum = 0;
	size_t i;

	name_rows(v);
	for (i = 0; i < CREMA_TIMES; i++)
		v[i].seconds = b ? (isnan(b->class_s[i]) ? 0 : b->class_s[i]) : f->all.cls[i];
	v[CREMA_TIMES].seconds = b ? b->unclassified : f->all.unclassified;
	v[CREMA_TIMES + 1].seconds = f->all.unmeasured_s;
	v[CREMA_TIMES + 2].seconds = b ? b->idle : 0;
	for (i = 0; i < ROWS; i++)
		sum += v[i].seconds;
	return sum;
}

/* "What held it back: 12.47 s = 2 threads for 6.235 s" */
static void put_title(const struct budget *b, double whole, struct sink *s, bool colour)
{
	char all[HUMAN_BYTES], wall[HUMAN_BYTES], threads[HUMAN_BYTES], title[160];

	human(value_real(whole), AS_SECONDS, all);
	if (b && b->thread_seconds > 0 && b->wall_seconds * b->threads >= b->thread_seconds * 0.999)
		snprintf(title, sizeof(title), "What held it back: %s = %s thread%s for %s", all,
			 human(value_real(b->threads), AS_IS, threads), b->threads == 1 ? "" : "s",
			 human(value_real(b->wall_seconds), AS_SECONDS, wall));
	else
		snprintf(title, sizeof(title), "What held it back: %s of the tasks' time", all);
	table_section(s, colour, title);
}

void time_bar_print(const struct facts *f, struct sink *s, bool colour)
{
	struct budget budget, *b = budget_build(&budget, f) ? &budget : NULL;
	struct row v[ROWS];
	double whole = collect(f, b, v);

	if (!(whole > 0)) {
		table_section(s, colour, "What held it back");
		sink_puts(s, "  unknown: the time of no task is known\n");
		return;
	}
	put_title(b, whole, s, colour);
	qsort(v, ROWS, sizeof(*v), by_seconds);
	share_columns(v, ROWS, sink_prose_columns(s) - 2);
	put_bar(v, ROWS, s, colour);
	qsort(v, ROWS, sizeof(*v), by_size); /* the smallest are dropped if the lines are full */
	put_legend(v, ROWS, whole, s);
}
