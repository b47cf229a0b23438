/* SPDX-License-Identifier: BSD-3-Clause */
/* emit_names.c - see emit_names.h. */
#include "collector/emit/emit_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/emit/emit_text.h"
#include "common/utf8.h"

#define EXTRA_BYTES 16 /* dots and a mark */
#define MARK_BYTES 4   /* "~999" */
#define LEAST_SHARED 4 /* bytes: less is not worth two dots */

/* A name, and its shortened form. */
struct trial {
	const char *name;
	char *cut;
	bool wide;
	size_t at; /* in the column */
};

struct trials {
	struct trial *v;
	size_t n, to;
	size_t head, tail; /* bytes that all wide names share */
};

/* Where to cut the middle if dots at the ends are not enough: tenths that the beginning keeps. */
static const unsigned int splits[] = {3, 5, 7, 0, 10};
#define SPLITS (sizeof(splits) / sizeof(splits[0]))

static size_t begins_alike(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] && a[n] == b[n])
		n++;
	while (n && !utf8_begins(a[n]))
		n--;
	return n;
}

static size_t ends_alike(const char *a, const char *b)
{
	size_t na = strlen(a), nb = strlen(b), n = 0;

	while (n < na && n < nb && a[na - 1 - n] == b[nb - 1 - n])
		n++;
	while (n && !utf8_begins(a[na - n]))
		n--;
	return n;
}

static bool separates(char c)
{
	return c && strchr("/_-.: ", c);
}

/* What several wide names have in common, up to the last separator between words. */
static void find_shared(struct trials *t)
{
	size_t i, n, head = 0, tail = 0, shortest = 0;
	const char *first = NULL;
	bool two = false;

	for (i = 0; i < t->n; i++) {
		if (!t->v[i].wide || (first && !strcmp(first, t->v[i].name)))
			continue;
		n = strlen(t->v[i].name);
		if (!first) {
			first = t->v[i].name;
			head = tail = shortest = n;
			continue;
		}
		two = true;
		shortest = n < shortest ? n : shortest;
		n = begins_alike(first, t->v[i].name);
		head = n < head ? n : head;
		n = ends_alike(first, t->v[i].name);
		tail = n < tail ? n : tail;
	}
	if (!two)
		return;
	for (n = head; n && !separates(first[n - 1]); n--)
		;
	head = n > LEAST_SHARED ? n : head;
	t->head = head > LEAST_SHARED ? head : 0;
	t->tail = tail > LEAST_SHARED && t->head + tail < shortest ? tail : 0;
}

/* Puts dots in place of the shared ends. */
static void drop_shared(const struct trials *t, struct trial *one, bool tail)
{
	size_t n = strlen(one->name), drop = tail ? t->tail : 0;

	if (one->wide && n > t->head + drop)
		snprintf(one->cut, n + EXTRA_BYTES, "%s%.*s%s", t->head ? ".." : "",
			 (int)(n - t->head - drop), one->name + t->head, drop ? ".." : "");
	else
		memcpy(one->cut, one->name, n + 1);
}

/* Whether all fit; `split` cuts the middles so that they do. */
static bool try_cut(struct trials *t, bool tail, size_t to, const unsigned int *split)
{
	bool fit = true;
	size_t i;

	for (i = 0; i < t->n; i++) {
		drop_shared(t, &t->v[i], tail);
		if (t->v[i].wide && split)
			text_cut(t->v[i].cut, to, (to > 2 ? to - 2 : 0) * *split / 10);
		fit = fit && text_width(t->v[i].cut) <= to;
	}
	return fit;
}

static int by_cut(const void *pa, const void *pb)
{
	const struct trial *a = pa, *b = pb;
	int order = strcmp(a->cut, b->cut);

	return order ? order : strcmp(a->name, b->name);
}

/* Whether different names still look different; sorts them. */
static bool are_different(struct trials *t)
{
	size_t i;

	qsort(t->v, t->n, sizeof(*t->v), by_cut);
	for (i = 1; i < t->n; i++) {
		if (!strcmp(t->v[i - 1].cut, t->v[i].cut) && strcmp(t->v[i - 1].name, t->v[i].name))
			return false;
	}
	return true;
}

/* The last resort: appends ~1, ~2, ... to names that look alike. */
static void mark(struct trials *t)
{
	size_t i, number = 0, room = t->to > MARK_BYTES + 2 ? t->to - MARK_BYTES : t->to;
	const char *cut = NULL, *name = NULL;

	try_cut(t, t->tail > 0, room, &splits[0]);
	are_different(t);
	for (i = 0; i < t->n; i++) {
		if (!t->v[i].wide)
			continue;
		number = !cut || strncmp(cut, t->v[i].cut, strlen(t->v[i].cut)) ? 0 : number;
		number += !number || strcmp(name, t->v[i].name);
		cut = t->v[i].cut;
		name = t->v[i].name;
		if (room < t->to)
			snprintf(t->v[i].cut + strlen(cut), MARK_BYTES + 1, "~%zu", number % 1000);
	}
}

static void choose(struct trials *t)
{
	size_t i;
	int tail;

	for (tail = 0; tail <= (t->tail > 0); tail++) {
		if (try_cut(t, tail, t->to, NULL) && are_different(t))
			return;
	}
	for (tail = t->tail > 0; tail >= 0; tail--) {
		for (i = 0; i < SPLITS; i++) {
			try_cut(t, tail, t->to, &splits[i]);
			if (are_different(t))
				return;
		}
	}
	mark(t);
}

int names_shorten(char **names, size_t n, size_t to)
{
	struct trials t = {.n = n, .to = to};
	bool wide = false;
	size_t i;
	int rc = 0;

	t.v = calloc(n ? n : 1, sizeof(*t.v));
	if (!t.v)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		t.v[i] = (struct trial){names[i], malloc(strlen(names[i]) + EXTRA_BYTES),
					text_width(names[i]) > to, i};
		wide = wide || t.v[i].wide;
		if (!t.v[i].cut)
			rc = -ENOMEM;
	}
	if (wide && !rc) {
		find_shared(&t);
		choose(&t);
		for (i = 0; i < n; i++) {
			/* never longer: each name has room for its replacement */
			if (t.v[i].wide)
				memcpy(names[t.v[i].at], t.v[i].cut, strlen(t.v[i].cut) + 1);
		}
	}
	for (i = 0; i < n; i++)
		free(t.v[i].cut);
	free(t.v);
	return rc;
}
