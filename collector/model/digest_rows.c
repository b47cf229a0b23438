/* SPDX-License-Identifier: BSD-3-Clause */
/* digest_rows.c - the digests in a probe's JSON text, read without building a tree. */
#include "collector/model/digest_rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/table.h"

#define EXACT_DIGITS 18 /* a JSON parser may reject longer integers */

struct scan {
	const char *at, *end;
};

static bool take(struct scan *s, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
		return false;
	s->at += n;
	return true;
}

/* Only plain ASCII. Escapes and UTF-8, which needs a check, are left to the parser. */
static bool take_text(struct scan *s, struct text *t)
{
	const char *from;

	*t = (struct text){NULL, 0};
	if (take(s, "null"))
		return true;
	if (!take(s, "\""))
		return false;
	for (from = s->at; s->at < s->end && *s->at != '"'; s->at++) {
		if (*s->at < ' ' || *s->at > '~' || *s->at == '\\')
			return false;
	}
	*t = (struct text){from, (size_t)(s->at - from)};
	return take(s, "\"");
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* strtod() accepts more than JSON does: 01, .5, 5., inf. */
static bool is_json_number(const char *p)
{
	size_t digits;

	p += *p == '-';
	digits = strspn(p, "0123456789");
	if (!digits || (*p == '0' && digits > 1))
		return false;
	p += digits;
	if (!*p)
		return digits <= EXACT_DIGITS;
	return *p != '.' || is_digit(p[1]);
}

static bool take_number(struct scan *s, double *value)
{
	char text[40], *end;
	size_t n;

	for (n = 0;
	     n < sizeof(text) - 1 && s->at < s->end && strchr("+-.0123456789eE", *s->at) && *s->at;
	     n++)
		text[n] = *s->at++;
	text[n] = 0;
	if (!is_json_number(text))
		return false;
	*value = strtod(text, &end);
	return !*end && isfinite(*value);
}

static bool take_row(struct scan *s, struct digest_row *r)
{
	size_t k;

	if (!take(s, "["))
		return false;
	for (k = 0; k < DIGEST_TEXTS; k++) {
		if (!take_text(s, &r->text[k]) || !take(s, ", "))
			return false;
	}
	return take_number(s, &r->value) && take(s, "]");
}

bool digest_rows_split(struct text json, struct digest_rows *rows, struct buf *rest)
{
	static const char begin[] = ", \"digests\": [", after[] = ", \"digests_cut\": ";
	/* No JSON string contains this: its quotes would be escaped. */
	const char *mark = json.ptr ? memmem(json.ptr, json.len, begin, sizeof(begin) - 1) : NULL;
	struct scan s = {mark ? mark + sizeof(begin) - 1 : NULL, json.ptr + json.len};
	struct digest_row *r;
	const char *end;

	if (!mark)
		return false;
	if (!take(&s, "]")) {
		do {
			r = ARRAY_NEW(rows);
			if (!r || !take_row(&s, r))
				return false;
		} while (take(&s, ", "));
		if (!take(&s, "]"))
			return false;
	}
	end = s.at;
	return take(&s, after) && !buf_add(rest, json.ptr, (size_t)(mark - json.ptr)) &&
	       !buf_add(rest, end, (size_t)(s.end - end));
}

int digest_rows_of(const json_t *list, struct digest_rows *rows)
{
	const json_t *row, *v;
	struct digest_row *r;
	size_t i, k;

	json_array_foreach(list, i, row)
	{
		if (!json_is_number(json_array_get(row, DIGEST_TEXTS)))
			continue;
		r = ARRAY_NEW(rows);
		if (!r)
			return -ENOMEM;
		r->value = json_number_value(json_array_get(row, DIGEST_TEXTS));
		for (k = 0; k < DIGEST_TEXTS; k++) {
			v = json_array_get(row, k);
			r->text[k] = (struct text){json_string_value(v), json_string_length(v)};
		}
	}
	return 0;
}
