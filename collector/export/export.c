/* SPDX-License-Identifier: BSD-3-Clause */
/* export.c - the table of export ways, and JSON, the simplest of them. */
#include "collector/export/export.h"

#include "collector/export/atomic_file.h"
#include "collector/print/print.h"

/* clang-format off */
const struct export_way export_ways[] = {
	{OPT_json, "-", export_json},
	{OPT_measurement, "run-%s-measurement", export_measurement},
	{OPT_csv, "run-%s-csv", export_csv},
	{OPT_sqlite, "run-%s.sqlite", export_sqlite},
	{OPT_html, "run-%s.html", export_html},
	{OPT_collapsed, "run-%s.collapsed", export_collapsed},
	{OPT_collapsed_bytes, "run-%s.bytes.collapsed", export_collapsed_bytes},
	{OPT_pprof, "run-%s.pb.gz", export_pprof},
	{OPT_perfetto, "run-%s.trace.json", export_perfetto},
};
/* clang-format on */
const size_t export_way_count = sizeof(export_ways) / sizeof(export_ways[0]);

int export_json(const struct report *r, const char *path, struct buf *why)
{
	struct atomic_file d;
	struct json j;

	atomic_file_init(&d, path);
	emit_init(&j, &d.sink);
	report_json(r, &j);
	return atomic_file_end(&d, why);
}
