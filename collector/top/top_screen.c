/* SPDX-License-Identifier: BSD-3-Clause */
/* top_screen.c - keys, drawing and requests in one loop. */
#include "collector/top/top_screen.h"

#include <curses.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"

#define PERIOD_MS 1000
#define WIDTH_MIN 20

struct screen {
	struct fetch *fetch;
	struct top *top;
	struct top_view view;
	bool help, quit;
	int y;
	int64_t next_ms; /* time of the next request */
	char trouble[512];
};

static volatile sig_atomic_t stopping;

static void on_stop(int signo)
{
	(void)signo;
	stopping = 1;
}

static int64_t now_ms(void)
{
	return (int64_t)(clock_mono_ns() / 1000000u);
}

/* Drawing */

static attr_t attributes(enum top_style style)
{
	switch (style) {
	case TOP_BOLD:
		return A_BOLD;
	case TOP_TITLES:
		return A_REVERSE;
	case TOP_ALARM:
		return has_colors() ? (attr_t)COLOR_PAIR(1) : A_BOLD;
	default:
		return A_NORMAL;
	}
}

static void put_line(void *arg, enum top_style style, const char *text)
{
	struct screen *s = arg;

	if (s->y >= LINES)
		return;
	move(s->y++, 0);
	attrset((int)attributes(style));
	addnstr(text, COLS);
	if (style == TOP_TITLES)
		hline(' ' | A_REVERSE, COLS);
	attrset(A_NORMAL);
}

static size_t table_rows(void)
{
	return LINES > TOP_HEAD_LINES ? (size_t)(LINES - TOP_HEAD_LINES) : 1;
}

static void draw(struct screen *s)
{
	unsigned int i;
	const char *text;

	erase();
	s->y = 0;
	if (s->help) {
		for (i = 0; (text = top_help(i)); i++)
			put_line(s, TOP_PLAIN, text);
	} else {
		s->view.rows = table_rows();
		if (s->view.first + s->view.rows > s->top->n)
			s->view.first = s->top->n > s->view.rows ? s->top->n - s->view.rows : 0;
		s->view.width = COLS < WIDTH_MIN ? WIDTH_MIN : COLS;
		s->view.trouble = s->trouble[0] ? s->trouble : NULL;
		top_sort(s->top, s->view.sort, s->view.reverse);
		top_draw(s->top, &s->view, put_line, s);
	}
	refresh();
}

/* Keys */

static void scroll_by(struct screen *s, long rows)
{
	if (rows < 0 && s->view.first < (size_t)-rows)
		s->view.first = 0;
	else
		s->view.first += (size_t)rows; /* draw() limits it to the end */
}

static void on_key(struct screen *s, int key)
{
	if (key == KEY_RESIZE)
		return;
	if (s->help && key != 'q') {
		s->help = false;
		return;
	}
	switch (key) {
	case 'q':
		s->quit = true;
		break;
	case 's':
		s->view.sort = (s->view.sort + 1) % TOP_COLUMN_COUNT;
		break;
	case 'S':
		s->view.sort = (s->view.sort + TOP_COLUMN_COUNT - 1) % TOP_COLUMN_COUNT;
		break;
	case 'r':
		s->view.reverse = !s->view.reverse;
		break;
	case 'h':
	case '?':
		s->help = true;
		break;
	case KEY_UP:
		scroll_by(s, -1);
		break;
	case KEY_DOWN:
		scroll_by(s, 1);
		break;
	case KEY_PPAGE:
		scroll_by(s, -(long)table_rows());
		break;
	case KEY_NPAGE:
		scroll_by(s, (long)table_rows());
		break;
	case KEY_HOME:
		s->view.first = 0;
		break;
	default:
		break;
	}
}

/* Requests */

static void on_answer(struct screen *s)
{
	const struct buf *body = fetch_answer(s->fetch, s->trouble, sizeof(s->trouble));

	if (!body)
		return;
	if (top_parse(s->top, (const char *)body->data, body->len))
		snprintf(s->trouble, sizeof(s->trouble), "the answer of %s is not a live.json",
			 fetch_from(s->fetch));
	else
		s->trouble[0] = '\0';
}

static void turn(struct screen *s)
{
	int64_t now = now_ms();
	int key;

	if (!fetch_running(s->fetch) && now >= s->next_ms) {
		s->next_ms = now + PERIOD_MS;
		fetch_start(s->fetch);
	}
	if (fetch_wait(s->fetch, STDIN_FILENO,
		       fetch_running(s->fetch) ? PERIOD_MS : (int)(s->next_ms - now)))
		on_answer(s);
	while ((key = getch()) != ERR)
		on_key(s, key);
}

/* The terminal may be closed: getch() would then return ERR forever, at full speed. */
static bool terminal_is_there(void)
{
	return tcgetpgrp(STDIN_FILENO) >= 0;
}

int top_screen(struct fetch *fetch, struct top *top, char *why, size_t size)
{
	struct sigaction stop = {.sa_handler = on_stop};
	struct screen s = {.fetch = fetch, .top = top, .view = {.sort = TOP_read}};
	SCREEN *terminal;

	s.view.from = fetch_from(fetch);
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGHUP, &stop, NULL);
	/* ncurses gets the size from the terminal; LINES and COLUMNS may be those of another
	 * one. */
	unsetenv("LINES");
	unsetenv("COLUMNS");
	terminal = newterm(NULL, stdout, stdin);
	if (!terminal) {
		snprintf(why, size, "the terminal '%.100s' is not known; set TERM, or use --once",
			 getenv("TERM") ? getenv("TERM") : "");
		return -1;
	}
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	if (has_colors()) {
		start_color();
		use_default_colors();
		init_pair(1, COLOR_RED, -1);
	}
	s.next_ms = now_ms() + PERIOD_MS;
	while (!s.quit && !stopping && terminal_is_there()) {
		draw(&s);
		turn(&s);
	}
	endwin();
	delscreen(terminal);
	return 0;
}
