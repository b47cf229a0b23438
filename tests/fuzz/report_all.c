/* SPDX-License-Identifier: BSD-3-Clause */
/* report_all.c - all outputs of a model of any origin. */
#include "tests/fuzz/report_all.h"

#include <stdlib.h>
#include <string.h>

#include "collector/print/print.h"

#define NOW_NS UINT64_C(1800000100000000000)

static int forget(struct buf *out, void *arg)
{
	(void)arg;
	buf_clear(out);
	return 0;
}

static void report_one(const struct run *run)
{
	struct buf out = BUF_INIT;
	struct sink s = {.out = &out, .flush = forget};
	struct report report;
	struct facts facts;
	struct json j;

	if (facts_build(&facts, run) || report_gather(&report, run, &facts))
		abort();
	emit_init(&j, &s);
	report_json(&report, &j);
	report_summary(&report, &(struct report_request){.usual_dir = true}, &s, true);
	report_tables(&report, REPORT_ALL_TABLES, &s, true);
	if (sink_end(&s))
		abort(); /* incomplete JSON */
	report_release(&report);
	facts_release(&facts);
	buf_release(&out);
}

void report_all(struct model *m)
{
	struct runs runs;

	memset(&runs, 0, sizeof(runs));
	if (model_close(m, NOW_NS) || runs_build(&runs, m))
		abort();
	for (size_t i = 0; i < runs.n && i < 8; i++)
		report_one(&runs.v[i]);
	runs_release(&runs);
}
