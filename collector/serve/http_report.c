/* SPDX-License-Identifier: BSD-3-Clause */
/* http_report.c - a report for the http side. */
#include "collector/serve/http_report.h"

#include "collector/page/page.h"
#include "collector/report/report.h"
#include "common/clock.h"

static int use_page(const struct report *report, void *arg, struct buf *why)
{
	struct sink s = {.out = arg};
	struct json j;

	(void)why;
	emit_init(&j, &s);
	page_data(report, &j);
	return sink_end(&s);
}

int http_report(const char *dir, enum http_kind kind, const char *run, struct buf *out)
{
	struct buf data = BUF_INIT;
	struct report_request request = {
		.dir = dir,
		.run = run,
		.json = kind == HTTP_JSON,
		.now_ns = clock_real_ns(),
		.use = kind == HTTP_PAGE ? use_page : NULL,
		.use_arg = &data,
	};
	int rc = report_render(&request, out);

	if (!rc && kind == HTTP_PAGE)
		rc = buf_add(out, data.data, data.len);
	buf_release(&data);
	return rc;
}
