/* SPDX-License-Identifier: BSD-3-Clause */
/* top_draw.c - the lines of `crema top`. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/emit/emit_table.h"
#include "collector/top/top.h"
#include "common/rows.h"

#define LINE_BYTES 512
#define NAME_WIDTH_MAX 40
#define BAR_WIDTH 20

static const struct {
	const char *title;
	int width, rank;
} columns[TOP_COLUMN_COUNT] = {
#define COLUMN(id, title, width, rank) [TOP_##id] = {title, width, rank},
	TOP_COLUMNS
#undef COLUMN
};

/* Sorting */

static enum top_column sort_by;
static bool sort_reverse;

static int compare(const void *pa, const void *pb)
{
	const struct top_row *a = pa, *b = pb;
	double x = a->value[sort_by], y = b->value[sort_by];
	int order = strcmp(a->name, b->name);

	if (sort_by == TOP_name)
		return sort_reverse ? -order : order;
	if (isnan(x) || isnan(y)) /* unknown values last in both directions */
		return isnan(x) == isnan(y) ? order : isnan(x) ? 1 : -1;
	if (x != y)
		return (x > y ? -1 : 1) * (sort_reverse ? -1 : 1);
	return order;
}

void top_sort(struct top *top, enum top_column by, bool reverse)
{
	sort_by = by;
	sort_reverse = reverse;
	qsort(top->rows, top->n, sizeof(*top->rows), compare);
}

/* Numbers */

static const char *in_unit(char *out, double value, enum human as)
{
	if (isnan(value))
		snprintf(out, HUMAN_BYTES, "-");
	else
		human(value_real(value), as, out);
	return out;
}

static const char *fixed(char *out, double value, int decimals)
{
	if (isnan(value))
		snprintf(out, HUMAN_BYTES, "-");
	else
		snprintf(out, HUMAN_BYTES, "%.*f", decimals, value);
	return out;
}

/* The two classes that a worker's threads wait for most: "GIL 42% storage 7%". */
static void waits_for(char *out, size_t size, const double *threads_in)
{
	unsigned int i, k, best;
	bool taken[CREMA_TIMES] = {[CREMA_T_cpu] = true};
	double wall = 0;
	size_t used = 0;

	*out = '\0';
	for (i = 0; i < CREMA_TIMES; i++)
		wall += isnan(threads_in[i]) ? 0 : threads_in[i];
	for (k = 0; k < 2 && wall > 0; k++) {
		for (i = 0, best = CREMA_TIMES; i < CREMA_TIMES; i++) {
			if (!taken[i] && threads_in[i] > 0 &&
			    (best == CREMA_TIMES || threads_in[i] > threads_in[best]))
				best = i;
		}
		if (best == CREMA_TIMES || threads_in[best] / wall < 0.005)
			break;
		taken[best] = true;
		used += (size_t)snprintf(out + used, size - used, "%s%s %.0f%%", used ? " " : "",
					 row_times[best].head, 100 * threads_in[best] / wall);
	}
	if (!*out)
		snprintf(out, size, "%s", wall > 0 ? "nothing" : "-");
}

/* Lines */

struct drawing {
	const struct top *top;
	const struct top_view *view;
	void (*line)(void *arg, enum top_style style, const char *text);
	void *arg;
};

__attribute__((format(printf, 3, 4))) static void draw(const struct drawing *d,
						       enum top_style style, const char *fmt, ...)
{
	char text[LINE_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (d->view->width < LINE_BYTES)
		text[d->view->width < 0 ? 0 : d->view->width] = '\0';
	d->line(d->arg, style, text);
}

/* "[######----] " if the total work is known; else nothing. */
static void bar(char *out, double share)
{
	int i, full = isnan(share) ? 0 : (int)(fmin(share, 1) * BAR_WIDTH);

	out[0] = '\0';
	if (isnan(share))
		return;
	*out++ = '[';
	for (i = 0; i < BAR_WIDTH; i++)
		*out++ = i < full ? '#' : '-';
	memcpy(out, "] ", 3);
}

static void draw_state(const struct drawing *d)
{
	const struct top *t = d->top;
	char a[HUMAN_BYTES], b[HUMAN_BYTES], c[HUMAN_BYTES], e[HUMAN_BYTES], f[HUMAN_BYTES];
	char line[BAR_WIDTH + 4];
	bool alarm = t->silent > 0 || t->lost > 0;

	draw(d, alarm ? TOP_ALARM : TOP_PLAIN,
	     "workers  %s connected, %s threads; %s silent, %s lost; gone: %.0f ended, %.0f killed",
	     in_unit(a, t->connected, AS_COUNT), in_unit(b, t->threads, AS_COUNT),
	     in_unit(c, t->silent, AS_COUNT), in_unit(e, t->lost, AS_COUNT), t->ended, t->killed);
	if (*t->stall)
		draw(d, TOP_ALARM, "tasks    %s", t->stall);
	else
		draw(d, TOP_PLAIN,
		     "tasks    %s running, %s ready on workers; %s/s, %s events/s; %s done",
		     in_unit(a, t->running, AS_COUNT), in_unit(b, t->ready, AS_COUNT),
		     fixed(c, t->tasks, 1), in_unit(e, t->events, AS_COUNT),
		     in_unit(f, t->done, AS_COUNT));
	bar(line, t->share_done);
	draw(d, TOP_PLAIN, "progress %s%s", line, *t->progress ? t->progress : "nothing to do");
	draw(d, t->erred + t->tasks_killed > 0 ? TOP_ALARM : TOP_PLAIN,
	     "         %s ok, %s erred, %s killed", in_unit(a, t->ok, AS_COUNT),
	     in_unit(b, t->erred, AS_COUNT), in_unit(c, t->tasks_killed, AS_COUNT));
}

/* Idle threads, and the shares of the others: CPU, and each class with a share. */
static void draw_threads(const struct drawing *d)
{
	const struct top *t = d->top;
	char line[LINE_BYTES], a[HUMAN_BYTES];
	unsigned int i;
	int used;

	used = snprintf(line, sizeof(line), "%s idle",
			in_unit(a, fmax(t->threads - t->running, 0), AS_COUNT));
	for (i = 0; i < CREMA_TIMES; i++)
		if (i == CREMA_T_cpu || !(t->threads_in[i] < 0.005))
			used += snprintf(line + used, sizeof(line) - (size_t)used, ", %s %s",
					 row_times[i].head, fixed(a, t->threads_in[i], 2));
	draw(d, TOP_PLAIN, "threads  %s", line);
}

static void draw_rates(const struct drawing *d)
{
	const struct top *t = d->top;
	char a[HUMAN_BYTES], b[HUMAN_BYTES], c[HUMAN_BYTES], e[HUMAN_BYTES], f[HUMAN_BYTES];

	draw(d, TOP_PLAIN, "Gbit/s   read %s, mapped %s, storage %s, network %s, unpacked %s",
	     fixed(a, t->read * 8e-9, 3), fixed(b, t->mapped * 8e-9, 3),
	     fixed(c, t->storage * 8e-9, 3), fixed(e, t->network * 8e-9, 3),
	     fixed(f, t->unpacked * 8e-9, 3));
	draw_threads(d);
	draw(d, t->near_limit > 0 ? TOP_ALARM : TOP_PLAIN,
	     "memory   %s of %s, fullest worker %s; spilled %s; %s cores busy",
	     in_unit(a, t->rss, AS_BYTES), in_unit(b, t->limit, AS_BYTES),
	     in_unit(c, t->largest, AS_SHARE), in_unit(e, t->spilled, AS_BYTES),
	     fixed(f, t->cpu, 2));
}

/* Which columns fit, and the width of the first one. */
static int choose(int width, bool shown[TOP_COLUMN_COUNT])
{
	int rank, i, used = 0;

	for (i = 0; i < TOP_COLUMN_COUNT; i++)
		shown[i] = true;
	for (rank = 6; rank >= 0; rank--) {
		for (i = 0, used = -1; i < TOP_COLUMN_COUNT; i++) {
			shown[i] = columns[i].rank <= rank;
			used += shown[i] ? columns[i].width + 1 : 0;
		}
		if (used <= width)
			break;
	}
	i = columns[TOP_name].width + (width > used ? width - used : 0);
	return i < NAME_WIDTH_MAX ? i : NAME_WIDTH_MAX;
}

static const char *cell(char *out, const struct top_row *row, enum top_column column)
{
	double value = row->value[column];

	switch (column) {
	case TOP_name:
		return row->name;
	case TOP_run:
	case TOP_ready:
		return in_unit(out, value, AS_COUNT);
	case TOP_memory:
		return in_unit(out, value, AS_BYTES);
	case TOP_limit:
		return in_unit(out, value, AS_SHARE);
	case TOP_read:
	case TOP_storage:
	case TOP_network:
	case TOP_unpacked:
		return fixed(out, value * 8e-9, 3);
	case TOP_waits:
		if (row->silent)
			snprintf(out, LINE_BYTES, "silent, %.0f s", row->heard);
		else if (*row->call)
			snprintf(out, LINE_BYTES, "%s", row->call);
		else
			waits_for(out, LINE_BYTES, row->threads_in);
		return out;
	default:
		return fixed(out, value, column == TOP_cpu ? 2 : 1);
	}
}

static bool on_the_left(enum top_column column)
{
	return column == TOP_name || column == TOP_waits;
}

/* row NULL: the titles */
static void draw_row(const struct drawing *d, const struct top_row *row, const bool *shown,
		     int name_width)
{
	char line[LINE_BYTES], text[LINE_BYTES], title[32];
	const char *what;
	size_t used = 0;
	int i, width;

	for (i = 0; i < TOP_COLUMN_COUNT && used < sizeof(line) - 64; i++) {
		if (!shown[i])
			continue;
		width = i == TOP_name ? name_width : columns[i].width;
		if (row) {
			what = cell(text, row, i);
		} else {
			snprintf(title, sizeof(title), "%s%s", columns[i].title,
				 d->view->sort == (enum top_column)i ? "*" : "");
			what = title;
		}
		used += (size_t)snprintf(line + used, sizeof(line) - used,
					 on_the_left(i) ? "%s%-*.*s" : "%s%*.*s", used ? " " : "",
					 width, i == TOP_waits ? TOP_CALL_BYTES : width, what);
	}
	while (used && line[used - 1] == ' ' && row)
		line[--used] = '\0';
	draw(d,
	     !row					   ? TOP_TITLES
	     : row->silent || row->value[TOP_limit] >= 0.8 ? TOP_ALARM
							   : TOP_PLAIN,
	     "%s", line);
}

void top_draw(const struct top *top, const struct top_view *view,
	      void (*line)(void *arg, enum top_style style, const char *text), void *arg)
{
	struct drawing d = {top, view, line, arg};
	bool shown[TOP_COLUMN_COUNT];
	int name_width = choose(view->width, shown);
	char uptime[HUMAN_BYTES], lost[HUMAN_BYTES], refused[HUMAN_BYTES];
	const char *at_least = top->losses_known ? "" : "at least ";
	size_t i, end = top->n;

	if (view->trouble)
		draw(&d, TOP_ALARM, "crema top  %s", view->trouble);
	else
		draw(&d, TOP_BOLD, "crema top  %s  version %s, up %s", view->from, top->version,
		     in_unit(uptime, top->uptime, AS_SECONDS));
	draw_state(&d);
	draw_rates(&d);
	draw(&d,
	     top->lost_records > 0 || top->refused_records > 0 || top->journal_error[0] ||
			     top->journals[0]
		     ? TOP_ALARM
		     : TOP_PLAIN,
	     "records  %s%s lost, %s%s refused%s%s%s%s%s", at_least,
	     in_unit(lost, top->lost_records, AS_COUNT), at_least,
	     in_unit(refused, top->refused_records, AS_COUNT),
	     top->journal_error[0] ? "; the journal cannot be written: " : "", top->journal_error,
	     top->journals[0] ? "; " : "", top->journals,
	     top->cut ? "; not all workers are shown" : "");
	draw_row(&d, NULL, shown, name_width);
	if (view->rows && view->first + view->rows < end)
		end = view->first + view->rows;
	for (i = view->first; i < end; i++)
		draw_row(&d, &top->rows[i], shown, name_width);
}

const char *top_help(unsigned int line)
{
	static const char *const text[TOP_HELP_LINES] = {
		"q        quit",
		"s  S     sort by the next column, or the previous column",
		"r        reverse the order",
		"up down  scroll the workers; also page up, page down, home",
		"h  ?     this help; any key returns",
		"",
		"Rates cover the last 4 to 8 s of each worker. READ: returned by read calls;",
		"STORAGE: charged by the kernel; UNPACKED: returned by codecs.",
		"threads: idle ones now; then how many threads with a task computed (cpu),",
		"or waited for a core, the GIL, locks, the network, storage, or slept.",
		"A wait counts when it ends. READY: on workers; tasks that wait in the scheduler",
		"are in progress.",
		"WAITS FOR names the call that a task has been in for 2 s: see 'crema stuck'.",
		"Sums cover all workers of all runs and schedulers; for one run: 'crema report'.",
	};

	return line < TOP_HELP_LINES ? text[line] : NULL;
}
