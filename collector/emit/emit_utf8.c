/* SPDX-License-Identifier: BSD-3-Clause */
/* emit_utf8.c - text of any origin as UTF-8. */
#include "collector/emit/emit_utf8.h"

size_t utf8_length(const unsigned char *p, size_t n)
{
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
