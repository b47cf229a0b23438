/* SPDX-License-Identifier: BSD-3-Clause */
/* emit_number.c - numbers as the shortest text that is read back as the very same number. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "collector/emit/emit.h"

#define GIGA 1000000000u
/* Below, doubles lie closer than 1e-9: each nanosecond has its own. */
#define EXACT 4194304.0
/* Where C writes no exponent, and whole numbers still have all their bits. */
#define LEAST 1e-4
#define MOST 9007199254740992.0

__extension__ typedef unsigned __int128 wide;

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

/*
 * v = m * 2^-s as `places` decimal digits, correctly rounded: n / 10^p. All of it is exact, as
 * m * 10^p has less than 128 bits for LEAST <= v < MOST and 15 to 17 places.
 */
struct decimal {
	uint64_t n;
	int p;
	bool same; /* it is read back as v */
};

static struct decimal decimal_of(double v, int places)
{
	static const double below[] = {0.1, 0.01, 0.001, 0};
	int bits, p = places;
	uint64_t m = (uint64_t)ldexp(frexp(v, &bits), 53);
	wide one = (wide)1 << (53 - bits), scale = 1, rest;
	struct decimal d;
	double edge;

	for (edge = 1; v >= edge; edge *= 10)
		p--;
	for (const double *at = below; v < *at; at++)
		p++;
	for (int i = 0; i < p; i++)
		scale *= 10;
	rest = m * scale & (one - 1);
	d = (struct decimal){.n = (uint64_t)(m * scale >> (53 - bits)), .p = p};
	if (rest * 2 > one || (rest * 2 == one && d.n & 1)) {
		d.n++;
		rest = one - rest;
	}
	/* Less than half the way to the next double; powers of 2, which have a nearer one below
	 * them, are exact with 15 places. */
	d.same = rest * 2 < scale;
	return d;
}

/* n / 10^p, without zeros at its end. */
static void put_decimal(struct sink *s, bool minus, uint64_t n, int p)
{
	char text[48], *end = text + sizeof(text), *at = end;

	for (; p && n % 10 == 0; p--)
		n /= 10;
	for (int i = 0; i < p; i++, n /= 10)
		*--at = (char)('0' + n % 10);
	if (p)
		*--at = '.';
	at = digits_before(at, n);
	if (minus)
		*--at = '-';
	sink_put(s, at, (size_t)(end - at));
}

static void put_any(struct sink *s, double v, int places)
{
	char text[32];

	for (; places <= 17; places++) {
		snprintf(text, sizeof(text), "%.*g", places, v);
		if (strtod(text, NULL) == v)
			break;
	}
	sink_puts(s, text);
}

/*
 * Most real numbers here are nanoseconds / 1e9. Both are exact doubles, so what their quotient is
 * rounded to is what a reader makes of the same decimal number. Of the larger ones most are times
 * since 1970, which need all 17 digits.
 */
void sink_real(struct sink *s, double v)
{
	double size = fabs(v);
	int places = size < EXACT ? 15 : 17;
	struct decimal d;

	if (size < EXACT) {
		uint64_t n = (uint64_t)(size * GIGA + 0.5);

		if ((double)n / GIGA == size) {
			put_decimal(s, v < 0, n, 9);
			return;
		}
	}
	if (!(size >= LEAST && size < MOST)) {
		put_any(s, v, places);
		return;
	}
	d = decimal_of(size, places);
	while (!d.same && places < 17)
		d = decimal_of(size, ++places);
	put_decimal(s, v < 0, d.n, d.p);
}

void sink_sample(struct sink *s, const char *name, double v)
{
	sink_puts(s, name);
	sink_put(s, " ", 1);
	sink_real(s, v);
	sink_put(s, "\n", 1);
}
