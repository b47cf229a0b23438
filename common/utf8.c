/* SPDX-License-Identifier: BSD-3-Clause */
/* utf8.c - text of any origin as UTF-8. */
#include "common/utf8.h"

size_t utf8_length(const void *text, size_t n)
{
	const unsigned char *p = text;
	unsigned char low = 0x80, high = 0xbf;
	size_t need, i;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	need = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (need > n || p[1] < low || p[1] > high)
		return 0;
	for (i = 2; i < need; i++) {
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	}
	return need;
}

size_t utf8_take(const void *text, size_t n, uint32_t *c)
{
	const unsigned char *p = text;
	size_t len = utf8_length(p, n), i;

	if (!len)
		return 0;
	*c = len == 1 ? *p : *p & (0xffu >> (len + 1));
	for (i = 1; i < len; i++)
		*c = *c << 6 | (p[i] & 0x3fu);
	return len;
}

bool utf8_is_shown(uint32_t c)
{
	if (c < 0x20 || (c >= 0x7f && c < 0xa0))
		return false;
	return c != 0x061c && !(c >= 0x200b && c <= 0x200f) && !(c >= 0x2028 && c <= 0x202e) &&
	       !(c >= 0x2060 && c <= 0x206f) && c != 0xfeff;
}

bool utf8_begins(char byte)
{
	return ((unsigned char)byte & 0xc0) != 0x80;
}

size_t utf8_whole(const char *text, size_t n)
{
	size_t back;

	for (back = 1; back <= 4 && back <= n; back++) {
		unsigned char c = (unsigned char)text[n - back];
		size_t need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

		if (utf8_begins(text[n - back]))
			return need > back ? n - back : n;
	}
	return n;
}

int utf8_add(struct buf *out, const char *text, size_t n)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t i = 0, start = 0, len;

	while (i < n) {
		len = utf8_length(p + i, n - i);
		if (len) {
			i += len;
			continue;
		}
		buf_add(out, text + start, i - start);
		buf_add(out, "\xef\xbf\xbd", 3);
		start = ++i;
	}
	return buf_add(out, text + start, i - start);
}
