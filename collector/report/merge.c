/* SPDX-License-Identifier: BSD-3-Clause */
/* merge.c - merges rows of several workers and spans as contract/rows.def specifies. */
#include "collector/report/report.h"

/* The smaller or larger of the known values. */
static struct value further(struct value a, struct value b, bool up)
{
	double x = value_number(a, NULL), y = value_number(b, NULL);

	return a.type == VALUE_NULL || (b.type != VALUE_NULL && (up ? y > x : y < x)) ? b : a;
}

void report_merge(struct value *sum, const struct value *v, const struct row_number *of, size_t n,
		  bool first)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (first || (of[i].merge == ROW_LATEST && v[i].type != VALUE_NULL))
			sum[i] = v[i];
		else if (of[i].merge == ROW_SUM)
			sum[i] = value_plus(sum[i], v[i]);
		else if (of[i].merge == ROW_MAX)
			sum[i] = value_larger(sum[i], v[i]);
		else if (of[i].merge == ROW_LEAST || of[i].merge == ROW_MOST)
			sum[i] = further(sum[i], v[i], of[i].merge == ROW_MOST);
	}
}
