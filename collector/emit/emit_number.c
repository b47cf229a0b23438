/* SPDX-License-Identifier: BSD-3-Clause */
/* emit_number.c - numbers as the shortest text that is read back as the very same number. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "collector/emit/emit.h"

#define GIGA 1000000000u
/* Below, doubles lie closer than 1e-9: each nanosecond has its own. */
#define EXACT 4194304.0

static char *digits_before(char *end, uint64_t v)
{
	do
		*--end = (char)('0' + v % 10);
	while (v /= 10);
	return end;
}

void sink_uint(struct sink *s, uint64_t v)
{
	char text[20], *end = text + sizeof(text), *at = digits_before(end, v);

	sink_put(s, at, (size_t)(end - at));
}

/* n / 1e9, without zeros at its end. */
static void put_billionths(struct sink *s, bool minus, uint64_t n)
{
	char text[32], *end = text + sizeof(text), *at;
	uint64_t part = n % GIGA;
	int places = part ? 9 : 0;

	for (; part && part % 10 == 0; places--)
		part /= 10;
	at = end;
	for (int i = 0; i < places; i++, part /= 10)
		*--at = (char)('0' + part % 10);
	if (places)
		*--at = '.';
	at = digits_before(at, n / GIGA);
	if (minus)
		*--at = '-';
	sink_put(s, at, (size_t)(end - at));
}

/*
 * Most real numbers here are nanoseconds / 1e9. Both are exact doubles, so what their quotient is
 * rounded to is what a reader makes of the same decimal number. Of the larger ones most are times
 * since 1970, which need all 17 digits.
 */
void sink_real(struct sink *s, double v)
{
	double size = fabs(v);
	char text[32];

	if (size < EXACT) {
		uint64_t n = (uint64_t)(size * GIGA + 0.5);

		if ((double)n / GIGA == size) {
			put_billionths(s, v < 0, n);
			return;
		}
	}
	for (int places = size < EXACT ? 15 : 17; places <= 17; places++) {
		snprintf(text, sizeof(text), "%.*g", places, v);
		if (strtod(text, NULL) == v)
			break;
	}
	sink_puts(s, text);
}

void sink_sample(struct sink *s, const char *name, double v)
{
	sink_puts(s, name);
	sink_put(s, " ", 1);
	sink_real(s, v);
	sink_put(s, "\n", 1);
}
