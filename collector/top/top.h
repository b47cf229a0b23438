/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * top.h - `crema top`: shows live.json on a screen, or once as plain text.
 *
 * top_parse() converts it to a struct in which all text is printable ASCII (anything else is '?'),
 * so that no name of a run can control the terminal. Unknown numbers are NAN and shown as "-".
 * top_draw() makes lines for any width; the screen and --once show the same lines.
 */
#ifndef CREMA_COLLECTOR_TOP_TOP_H
#define CREMA_COLLECTOR_TOP_TOP_H

#include <stdbool.h>
#include <stddef.h>

#include "ids.h"

#define TOP_NAME_BYTES 64
#define TOP_CALL_BYTES 96
#define TOP_CALL_SECONDS 2.0 /* a longer call is shown in place of the usual waits */
#define TOP_PLAIN_WIDTH 120  /* of --once */

/* COLUMN(id, title, width, rank): lower ranks stay longer when the screen is narrow */
#define TOP_COLUMNS                                                                                \
	COLUMN(name, "WORKER", 14, 0)                                                              \
	COLUMN(run, "RUN", 4, 1)                                                                   \
	COLUMN(ready, "READY", 6, 4)                                                               \
	COLUMN(tasks, "TASKS/S", 8, 3)                                                             \
	COLUMN(cpu, "CPU", 5, 2)                                                                   \
	COLUMN(memory, "MEMORY", 8, 3)                                                             \
	COLUMN(limit, "LIMIT", 6, 5)                                                               \
	COLUMN(read, "READ Gb/s", 10, 2)                                                           \
	COLUMN(storage, "STORAGE", 8, 4)                                                           \
	COLUMN(network, "NETWORK", 8, 6)                                                           \
	COLUMN(unpacked, "UNPACKED", 9, 6)                                                         \
	COLUMN(waits, "WAITS FOR", 16, 1)

enum top_column {
#define COLUMN(id, title, width, rank) TOP_##id,
	TOP_COLUMNS
#undef COLUMN
		TOP_COLUMN_COUNT
};

struct top_row {
	char name[TOP_NAME_BYTES];
	bool silent;
	double heard;			/* seconds ago */
	double value[TOP_COLUMN_COUNT]; /* except the name; for waits: the share of time */
	double threads_in[CREMA_TIMES];
	char call[TOP_CALL_BYTES]; /* that a task has been in for TOP_CALL_SECONDS; "": none */
	double call_seconds;
};

struct top {
	char version[32];
	double uptime;
	double connected, silent, lost, ended, killed, threads;
	double running, ready, done, ok, erred, tasks_killed, remaining, tasks, events;
	double read, mapped, storage, network, unpacked, cpu; /* bytes per second; cores */
	double threads_in[CREMA_TIMES];
	double rss, limit, largest, near_limit, spilled;
	double lost_records, refused_records;
	bool losses_known;		    /* false: there may be more, as a worker is silent */
	char journal_error[TOP_NAME_BYTES]; /* why it cannot be written; "": it can */
	char journals[160];		    /* of `crema page`: what the sums lack; "": nothing */
	char progress[128];		    /* in words; "": idle */
	double share_done;		    /* share of the total work; NAN: unknown */
	char stall[160]; /* why no task begins or ends; "": they do, or there is none */
	struct top_row *rows;
	size_t n, cut;
};

/* Replaces the contents of top: 0, -EBADMSG (unchanged) or -ENOMEM. */
int top_parse(struct top *top, const char *json, size_t n);
void top_release(struct top *top);
/* Copies it as printable ASCII, cut to size; NULL: "". */
void top_clean(char *dst, size_t size, const char *text);

struct top_view {
	enum top_column sort;
	bool reverse;
	size_t first, rows; /* of the table; rows 0: all */
	int width;
	const char *from;    /* address of the collector */
	const char *trouble; /* shown instead of new numbers; NULL: none */
};

enum top_style { TOP_PLAIN, TOP_BOLD, TOP_TITLES, TOP_ALARM };

void top_sort(struct top *top, enum top_column by, bool reverse);
/* Calls line() for each line, without a newline, at most `width` characters. */
void top_draw(const struct top *top, const struct top_view *view,
	      void (*line)(void *arg, enum top_style style, const char *text), void *arg);
#define TOP_HEAD_LINES 10 /* before the first row of the table */
#define TOP_HELP_LINES 14
const char *top_help(unsigned int line);

#endif
