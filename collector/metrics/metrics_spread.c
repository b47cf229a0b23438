/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics_spread.c - mean, deviation and extremes of a sequence of values. */
#include <math.h>

#include "collector/metrics/metrics.h"

void spread_add(struct spread *s, struct value v)
{
	bool known;
	double d = value_number(v, &known);
	double step;

	if (!known) {
		s->unknown++;
		return;
	}
	if (!s->n || d < s->min)
		s->min = d;
	if (!s->n || d > s->max)
		s->max = d;
	s->n++;
	s->sum += d;
	step = d - s->mean; /* Welford: sum2 = sum of squared distances from the mean */
	s->mean += step / (double)s->n;
	s->sum2 += step * (d - s->mean);
}

struct value spread_mean(const struct spread *s)
{
	return s->n && !s->unknown ? value_real(s->sum / (double)s->n) : value_null();
}

struct value spread_std(const struct spread *s)
{
	return s->n && !s->unknown ? value_real(sqrt(s->sum2 / (double)s->n)) : value_null();
}

struct value spread_sample_std(const struct spread *s)
{
	return s->n > 1 && !s->unknown ? value_real(sqrt(s->sum2 / (double)(s->n - 1)))
				       : value_null();
}

struct value spread_min(const struct spread *s)
{
	return s->n && !s->unknown ? value_real(s->min) : value_null();
}

struct value spread_max(const struct spread *s)
{
	return s->n && !s->unknown ? value_real(s->max) : value_null();
}
