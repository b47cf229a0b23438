/* SPDX-License-Identifier: BSD-3-Clause */
/* http_page.c - the report page as a response. */
#include "collector/web/http_page.h"

#include <stdio.h>

#include "collector/page/page_live.h"

char http_page_policy[512];

void http_page(void *arg, struct buf *out)
{
	struct sink s = {.out = out};

	(void)arg;
	page_live(&s);
}

/* Only a header can specify who may frame the page: JupyterLab does, from the same origin. */
void http_page_init(void)
{
	struct buf text = BUF_INIT;

	page_policy(&text, true);
	snprintf(http_page_policy, sizeof(http_page_policy), "%.*s; frame-ancestors 'self'",
		 (int)text.len, (const char *)text.data);
	buf_release(&text);
}
