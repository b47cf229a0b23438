/* SPDX-License-Identifier: BSD-3-Clause */
/* units.c - "14d" and "20G". */
#include "common/units.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct unit {
	const char *name;
	double factor;
};

static const struct unit times[] = {
	{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}, {"w", 7 * 86400}, {NULL, 0},
};
static const struct unit amounts[] = {
	{"", 1},	{"k", 1e3},	{"K", 1e3},	{"M", 1e6},	{"G", 1e9}, {"T", 1e12},
	{"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}, {NULL, 0},
};

/* The number before a unit; only digits and a point, unlike strtod. */
static int number(const char *text, const char **unit, double *value)
{
	size_t digits = strspn(text, "0123456789.");
	char *end;

	*value = digits ? strtod(text, &end) : 0;
	if (!digits || end != text + digits || !isfinite(*value))
		return -EINVAL;
	*unit = end;
	return 0;
}

static double factor_of(const struct unit *units, const char *name, size_t n)
{
	for (; units->name; units++) {
		if (strlen(units->name) == n && !memcmp(units->name, name, n))
			return units->factor;
	}
	return 0;
}

static int scaled(const struct unit *units, const char *text, const char *unit, size_t n,
		  double most, double scale, uint64_t *out)
{
	double value, factor = factor_of(units, unit, n);
	const char *rest;

	if (number(text, &rest, &value) || factor <= 0 || value * factor > most)
		return -EINVAL;
	*out = (uint64_t)(value * factor * scale);
	return 0;
}

int units_time(const char *text, uint64_t *ns)
{
	const char *unit = text + strspn(text, "0123456789.");

	return scaled(times, text, unit, strlen(unit), 500 * 366 * 86400.0, 1e9, ns);
}

int units_bytes(const char *text, uint64_t *bytes)
{
	const char *unit = text + strspn(text, "0123456789.");
	size_t n = strlen(unit);

	if (n && unit[n - 1] == 'B')
		n--;
	return scaled(amounts, text, unit, n, 0x1p62, 1, bytes);
}
