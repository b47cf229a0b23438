/* SPDX-License-Identifier: BSD-3-Clause */
/* emit_number.c - numbers as the shortest text that reads back as the same number. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/emit/emit.h"

#define GIGA 1000000000u
/* Below this, doubles are less than 1e-9 apart: each nanosecond has its own. */
#define EXACT 4194304.0
/* The range in which m * 10^p fits in 128 bits and whole numbers are exact. */
#define LEAST 1e-6
#define MOST 9007199254740992.0
/* Below this, C writes an exponent. */
#define EXPONENT 1e-4

__extension__ typedef unsigned __int128 wide;

/* Two digits at a time. */
static const char pairs[] =
	"00010203040506070809101112131415161718192021222324252627282930313233343536373839"
	"40414243444546474849505152535455565758596061626364656667686970717273747576777879"
	"8081828384858687888990919293949596979899";

static char *digits_before(char *end, uint64_t v)
{
	for (; v >= 100; v /= 100)
		memcpy(end -= 2, pairs + 2 * (v % 100), 2);
	if (v >= 10)
		memcpy(end -= 2, pairs + 2 * v, 2);
	else
		*--end = (char)('0' + v);
	return end;
}

static size_t digits_of(uint64_t v)
{
	uint64_t power = 10;
	size_t n = 1;

	for (; n < 19 && v >= power; n++)
		power *= 10;
	return n + (n == 19 && v >= power);
}

char *number_uint(char *to, uint64_t v)
{
	char *end;

	if (v < 10) { /* most numbers are 0 */
		*to = (char)('0' + v);
		return to + 1;
	}
	end = to + digits_of(v);
	digits_before(end, v);
	return end;
}

void sink_uint(struct sink *s, uint64_t v)
{
	char *room = sink_room(s, NUMBER_ROOM);

	if (room)
		sink_take(s, number_uint(room, v));
}

/*
 * v = m * 2^-s as `places` decimal digits, correctly rounded: n / 10^p. All of it is exact, as m *
 * 10^p has less than 128 bits for LEAST <= v < MOST and 15 to 17 places.
 */
struct decimal {
	uint64_t n;
	int p;
	bool same; /* reads back as v */
};

static struct decimal decimal_of(double v, int places)
{
	static const double below[] = {0.1, 0.01, 0.001, 0.0001, 0.00001, 0};
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
	/* Less than half the distance to the next double. Powers of 2, which have a nearer one
	 * below them, are exact with 15 places. */
	d.same = rest * 2 < scale;
	return d;
}

/* n / 10^p, without trailing zeros. */
static char *put_decimal(char *to, bool minus, uint64_t n, int p)
{
	uint64_t power = 1, whole;
	int i;

	for (; p > 1 && n % 100 == 0; p -= 2)
		n /= 100;
	if (p && n % 10 == 0) {
		n /= 10;
		p--;
	}
	for (i = 0; i < p; i++)
		power *= 10;
	whole = n / power;
	n -= whole * power;
	if (minus)
		*to++ = '-';
	to = number_uint(to, whole);
	if (!p)
		return to;
	*to = '.';
	for (to += p + 1, i = p; i > 1; i -= 2, n /= 100)
		memcpy(to - (p - i) - 2, pairs + 2 * (n % 100), 2);
	if (i)
		to[-p] = (char)('0' + n);
	return to;
}

/* n / 10^p with one digit before the point and an exponent of one digit. */
static char *put_exponent(char *to, bool minus, uint64_t n, int p)
{
	char *end;

	for (; n % 10 == 0; n /= 10)
		p--;
	if (minus)
		*to++ = '-';
	end = number_uint(to + 1, n);
	p -= (int)(end - to) - 2;
	to[0] = to[1];
	to[1] = '.';
	end -= end == to + 2;
	memcpy(end, "e-0", 3);
	end[3] = (char)('0' + p);
	return end + 4;
}

static char *put_any(char *to, double v, int places)
{
	int n = 0;

	for (; places <= 17; places++) {
		n = snprintf(to, NUMBER_ROOM, "%.*g", places, v);
		if (strtod(to, NULL) == v)
			break;
	}
	return to + n;
}

/*
 * Most real numbers here are nanoseconds / 1e9. Both are exact doubles, so their rounded quotient
 * is the double that a reader gets from the same decimal number. Most larger ones are times since
 * 1970, which need all 17 digits.
 */
char *number_real(char *to, double v)
{
	double size = fabs(v);
	int places = size < EXACT ? 15 : 17;
	struct decimal d;

	if (size == 0)
		return number_uint(to, 0);
	if (size < EXACT) {
		uint64_t n = (uint64_t)(size * GIGA + 0.5);

		if ((double)n / GIGA == size)
			return put_decimal(to, v < 0, n, 9);
	}
	if (!(size >= LEAST && size < MOST))
		return put_any(to, v, places);
	d = decimal_of(size, places);
	while (!d.same && places < 17)
		d = decimal_of(size, ++places);
	return (size < EXPONENT ? put_exponent : put_decimal)(to, v < 0, d.n, d.p);
}

void sink_real(struct sink *s, double v)
{
	char *room = sink_room(s, NUMBER_ROOM);

	if (room)
		sink_take(s, number_real(room, v));
}

void sink_sample(struct sink *s, const char *name, double v)
{
	sink_puts(s, name);
	sink_put(s, " ", 1);
	sink_real(s, v);
	sink_put(s, "\n", 1);
}
