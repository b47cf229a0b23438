/* SPDX-License-Identifier: BSD-3-Clause */
/* digits.h - a number as text, without libc's formatting. */
#ifndef CREMA_SHIM_COUNT_DIGITS_H
#define CREMA_SHIM_COUNT_DIGITS_H

#include <stdint.h>

/* Writes v to base 10 or 16 (at most 20 characters, no NUL) and returns its end. */
static inline char *put_number(char *to, uint64_t v, unsigned int base)
{
	char digits[20];
	int n = 0;

	do
		digits[n++] = "0123456789abcdef"[v % base];
	while (v /= base);
	while (n)
		*to++ = digits[--n];
	return to;
}

#endif
