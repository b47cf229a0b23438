/* SPDX-License-Identifier: BSD-3-Clause */
/* cut_text.h - how much of a UTF-8 text to keep where there is room for less. */
#ifndef CREMA_SHIM_COUNT_CUT_TEXT_H
#define CREMA_SHIM_COUNT_CUT_TEXT_H

#include <stddef.h>

/* How many of the text's n bytes to keep in room for `most`, without cutting a character. */
static inline size_t cut_text(const char *text, size_t n, size_t most)
{
	size_t keep = n < most ? n : most;

	while (keep < n && keep > 0 && ((unsigned char)text[keep] & 0xc0) == 0x80)
		keep--;
	return keep;
}

#endif
