/* SPDX-License-Identifier: BSD-3-Clause */
/* emit_human.c - values in units for people. */
#include "collector/emit/emit_table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Nobody reads more digits, and truncated ones would be another number. */
static bool put_huge(double d, const char *unit, char *out)
{
	if (fabs(d) < 1e15)
		return false;
	snprintf(out, HUMAN_BYTES, "%.3e%s", d, unit);
	return true;
}

static void put_count(double d, char *out)
{
	char digits[HUMAN_BYTES];
	size_t n, i, o = 0;

	if (put_huge(d, "", out))
		return;
	snprintf(digits, sizeof(digits), "%.0f", fabs(d));
	n = strlen(digits);
	if (d <= -0.5)
		out[o++] = '-';
	for (i = 0; i < n && o < HUMAN_BYTES - 2; i++) {
		if (i && (n - i) % 3 == 0)
			out[o++] = ',';
		out[o++] = digits[i];
	}
	out[o] = '\0';
}

/* 4 significant digits */
static void put_short(double d, const char *unit, char *out)
{
	double size = fabs(d);
	int decimals = size >= 999.95 ? 0 : size >= 99.995 ? 1 : size >= 9.9995 ? 2 : 3;

	if (size >= 9999.5) {
		put_count(d, out);
		snprintf(out + strlen(out), HUMAN_BYTES - strlen(out), "%s", unit);
	} else if (size > 0 && size < 0.0995) {
		snprintf(out, HUMAN_BYTES, "%.2g%s", d, unit);
	} else {
		snprintf(out, HUMAN_BYTES, "%.*f%s", decimals, d, unit);
	}
}

/* In the next larger unit from five digits on. */
static void put_rate(double d, const char *unit, const char *larger, char *out)
{
	bool large = fabs(d) >= 9999.5;

	put_short(large ? d / 1000 : d, large ? larger : unit, out);
}

static void put_bytes(double d, char *out)
{
	static const char *const units[] = {" B", " kB", " MB", " GB", " TB", " PB", " EB"};
	size_t i = 0;

	while (fabs(d) >= 999.95 && i + 1 < sizeof(units) / sizeof(*units)) {
		d /= 1000;
		i++;
	}
	if (!i)
		snprintf(out, HUMAN_BYTES, "%.0f B", d);
	else
		put_short(d, units[i], out);
}

static void put_seconds(double d, char *out)
{
	double size = fabs(d);

	if (put_huge(d, " s", out))
		return;
	if (size >= 3599.5)
		snprintf(out, HUMAN_BYTES, "%.0f h %02.0f m", trunc(d / 3600),
			 floor(fmod(size, 3600) / 60));
	else if (size >= 119.95)
		snprintf(out, HUMAN_BYTES, "%.0f m %04.1f s", trunc(d / 60), fmod(size, 60));
	else if (size >= 0.9995)
		put_short(d, " s", out);
	else if (size >= 0.9995e-3)
		put_short(d * 1e3, " ms", out);
	else if (size > 0)
		put_short(d * 1e6, " us", out);
	else
		snprintf(out, HUMAN_BYTES, "0 s");
}

static void put_number(double d, enum human as, char *out)
{
	switch (as) {
	case AS_COUNT:
		put_count(d, out);
		break;
	case AS_BYTES:
		put_bytes(d, out);
		break;
	case AS_MIB:
		put_short(d, " MiB", out);
		break;
	case AS_SECONDS:
		put_seconds(d, out);
		break;
	case AS_SHARE:
		d *= 100;
		/* fall through */
	case AS_PERCENT:
		if (!put_huge(d, " %", out))
			snprintf(out, HUMAN_BYTES, "%.1f %%", d);
		break;
	case AS_MBS:
		put_rate(d, " MB/s", " GB/s", out);
		break;
	case AS_GBPS:
		put_short(d, " Gbit/s", out);
		break;
	case AS_KHZ:
		put_rate(d, " kHz", " MHz", out);
		break;
	case AS_HZ:
		put_short(d, " Hz", out);
		break;
	case AS_TIMES:
		if (!put_huge(d, "x", out))
			snprintf(out, HUMAN_BYTES, "%.2fx", d);
		break;
	default:
		if (d == floor(d))
			put_count(d, out);
		else
			put_short(d, "", out);
	}
}

/* Turns "-0.0 %" into "0.0 %". */
static void drop_sign_of_zero(char *out)
{
	if (*out == '-' && out[strcspn(out, "123456789")] == '\0')
		memmove(out, out + 1, strlen(out));
}

char *human(struct value v, enum human as, char *out)
{
	bool known;
	double d = value_number(v, &known);

	if (v.type == VALUE_TEXT)
		snprintf(out, HUMAN_BYTES, "%s", v.v.s);
	else if (!known)
		snprintf(out, HUMAN_BYTES, "unknown");
	else if (as == AS_YES || v.type == VALUE_BOOL)
		snprintf(out, HUMAN_BYTES, "%s", d != 0 ? "yes" : "no");
	else
		put_number(d, as, out);
	if (known && isfinite(d))
		drop_sign_of_zero(out);
	return out;
}
