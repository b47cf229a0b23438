/* SPDX-License-Identifier: BSD-3-Clause */
/* emit_text.c - the width of text on a terminal, and characters that must not reach it. */
#include "collector/emit/emit_text.h"

#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "collector/emit/emit_table.h"
#include "common/utf8.h"

static locale_t utf8_locale;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_locale(void)
{
	utf8_locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

/* Columns of a character; -1: not printable. Without the locale (not part of an old libc): 1. */
static int char_width(wchar_t c)
{
	locale_t before;
	int w;

	if (c >= 0x20 && c < 0x7f)
		return 1;
	if (c < 0xa0)
		return -1;
	pthread_once(&once, make_locale);
	if (!utf8_locale)
		return 1;
	before = uselocale(utf8_locale);
	w = wcwidth(c);
	uselocale(before);
	return w;
}

/* Length of the character at p, and the character; -1: not UTF-8 */
static size_t take(const char *p, wchar_t *c)
{
	uint32_t code = 0;
	size_t n = utf8_take(p, strnlen(p, 4), &code);

	*c = n ? (wchar_t)code : -1;
	return n ? n : 1;
}

char *text_clean(char *s)
{
	char *from = s, *to = s;
	size_t n;
	wchar_t c;

	while (*from) {
		n = take(from, &c);
		if (c < 0 || !utf8_is_shown((uint32_t)c) || char_width(c) < 0) {
			*to++ = '?';
		} else {
			memmove(to, from, n);
			to += n;
		}
		from += n;
	}
	*to = '\0';
	return s;
}

size_t text_width(const char *s)
{
	size_t width = 0;
	wchar_t c;
	int w;

	while (*s) {
		s += take(s, &c);
		w = char_width(c);
		width += w < 0 ? 1 : (size_t)w;
	}
	return width;
}

size_t text_word(const char *s, size_t *bytes)
{
	size_t width = 0;
	wchar_t c;
	int w;

	for (*bytes = 0; s[*bytes] && s[*bytes] != ' ';) {
		*bytes += take(s + *bytes, &c);
		w = char_width(c);
		width += w < 0 ? 1 : (size_t)w;
	}
	return width;
}

/* Bytes of the longest prefix that fits in that many columns. */
static size_t beginning(const char *s, size_t columns)
{
	size_t bytes = 0, width = 0, n;
	wchar_t c;
	int w;

	while (s[bytes]) {
		n = take(s + bytes, &c);
		w = char_width(c);
		width += w < 0 ? 1 : (size_t)w;
		if (width > columns)
			break;
		bytes += n;
	}
	return bytes;
}

void text_cut(char *s, size_t to, size_t keep)
{
	size_t width = text_width(s), head, tail;

	if (width <= to)
		return;
	if (to < 5) {
		s[beginning(s, to)] = '\0';
		return;
	}
	head = beginning(s, keep);
	tail = beginning(s, width - (to - keep - 2));
	/* a wide character across the cut is removed, too */
	while (s[tail] && text_width(s + tail) > to - keep - 2)
		tail += beginning(s + tail, 2);
	memmove(s + head + 2, s + tail, strlen(s + tail) + 1);
	memcpy(s + head, "..", 2);
}

void text_shorten(char *s, size_t to)
{
	text_cut(s, to, to / 3);
}

static void wrap(struct sink *s, const char *lead, const char *text)
{
	size_t indent = text_width(lead), room = sink_prose_columns(s) - indent, fit, cut;

	sink_puts(s, lead);
	while (*text) {
		fit = beginning(text, room);
		cut = fit;
		if (text[fit]) {
			while (cut && text[cut] != ' ')
				cut--;
			if (!cut) /* one word longer than a line */
				cut = fit;
		}
		sink_put(s, text, cut);
		text += cut;
		text += strspn(text, " ");
		if (*text)
			sink_printf(s, "\n%*s", (int)indent, "");
	}
	sink_puts(s, "\n");
}

void text_paragraph(struct sink *s, const char *lead, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0) {
		s->error = -ENOMEM;
		return;
	}
	wrap(s, lead, text_clean(text));
	free(text);
}
