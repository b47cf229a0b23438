/* SPDX-License-Identifier: BSD-3-Clause */
/* page_values.c - a name and a time in the page's data. */
#include <math.h>
#include <string.h>

#include "collector/page/page.h"
#include "common/utf8.h"

void page_name(struct json *j, const char *name, const char *text)
{
	static const char gap[] = "\xe2\x80\xa6"; /* ... */
	const size_t head = PAGE_NAME_BYTES / 2, tail = PAGE_NAME_BYTES - head - 3;
	char out[PAGE_NAME_BYTES + 1];
	size_t n = text ? strlen(text) : 0, a = head, b;

	if (n <= PAGE_NAME_BYTES) {
		emit_value(j, name, value_text(text));
		return;
	}
	/* never inside a character */
	while (a && !utf8_begins(text[a]))
		a--;
	for (b = n - tail; b < n && !utf8_begins(text[b]); b++)
		;
	memcpy(out, text, a);
	memcpy(out + a, gap, 3);
	memcpy(out + a + 3, text + b, n - b);
	emit_text(j, name, out, a + 3 + n - b);
}

void page_micro(struct json *j, const char *name, double seconds)
{
	if (isfinite(seconds) && fabs(seconds) < 1e12)
		emit_value(j, name, value_int((int64_t)llround(seconds * 1e6)));
	else
		emit_value(j, name, value_null());
}
