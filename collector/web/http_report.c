/* SPDX-License-Identifier: BSD-3-Clause */
/* http_report.c - a report for the status page. */
#include "collector/web/http_report.h"

#include "collector/page/page.h"
#include "collector/print/render.h"
#include "common/clock.h"

static int use_page(const struct report *report, void *arg, struct buf *why)
{
	struct json j;

	(void)why;
	emit_init(&j, arg);
	page_data(report, &j);
	return j.sink->error;
}

int http_report(const char *dir, const char *const *more, enum http_kind kind, const char *run,
		struct sink *out)
{
	struct buf data = BUF_INIT;
	struct sink page = {.out = &data, .flush = out->flush, .arg = out->arg};
	struct report_request request = {
		.dir = dir,
		.more = more,
		.pass_over = true,
		.run = run,
		.list = kind == HTTP_RUNS,
		.json = kind == HTTP_JSON || kind == HTTP_RUNS,
		.tables = REPORT_ALL_TABLES,
		.now_ns = clock_real_ns(),
		.flush = out->flush,
		.flush_arg = out->arg,
		.use = kind == HTTP_PAGE ? use_page : NULL,
		.use_arg = &page,
	};
	int rc = report_render(&request, out->out);

	if (!rc && kind == HTTP_PAGE)
		rc = sink_end(&page);
	buf_release(&data);
	return rc;
}
