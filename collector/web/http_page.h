/* SPDX-License-Identifier: BSD-3-Clause */
/* http_page.h - the report page as a response. */
#ifndef CREMA_COLLECTOR_WEB_HTTP_PAGE_H
#define CREMA_COLLECTOR_WEB_HTTP_PAGE_H

#include "common/buf.h"

/* Members of struct http_text: its make, and its policy, valid after http_page_init(). */
void http_page(void *arg, struct buf *out);
extern char http_page_policy[512];
void http_page_init(void);

#endif
