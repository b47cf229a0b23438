/* SPDX-License-Identifier: BSD-3-Clause */
/* export_html.c - the report as one page. */
#include "collector/export/export.h"
#include "collector/export/target.h"
#include "collector/page/page.h"

int export_html(const struct report *r, const char *path, struct buf *why)
{
	struct target t;

	target_init(&t, path);
	page_write(r, &t.sink);
	return target_close(&t, why);
}
