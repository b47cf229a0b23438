/* SPDX-License-Identifier: BSD-3-Clause */
/* export_html.c - the report as an HTML page. */
#include "collector/export/atomic_file.h"
#include "collector/export/export.h"
#include "collector/page/page.h"

int export_html(const struct report *r, const char *path, struct buf *why)
{
	struct atomic_file d;

	atomic_file_init(&d, path);
	page_write(r, &d.sink);
	return atomic_file_end(&d, why);
}
