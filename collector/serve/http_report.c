/* SPDX-License-Identifier: BSD-3-Clause */
/* http_report.c - a report for the status page. */
#include "collector/serve/http_report.h"

#include "collector/report/report.h"
#include "common/clock.h"

int http_report(const char *dir, bool json, const char *run, struct buf *out)
{
	struct report_request request = {
		.dir = dir,
		.run = run,
		.json = json,
		.now_ns = clock_real_ns(),
	};

	return report_render(&request, out);
}
