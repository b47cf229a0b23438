/* SPDX-License-Identifier: BSD-3-Clause */
/* fail.c - one line in place of a report. */
#include <stdarg.h>
#include <stdio.h>

#include "collector/print/render.h"

int report_fail(struct buf *out, int rc, const char *fmt, ...)
{
	char line[REPORT_LINE_BYTES];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	buf_clear(out);
	if (n > 0)
		buf_add(out, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
	return rc;
}
