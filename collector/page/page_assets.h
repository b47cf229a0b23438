/* SPDX-License-Identifier: BSD-3-Clause */
/* page_assets.h - texts that page.mk embeds into the program. Static, not terminated. */
#ifndef CREMA_COLLECTOR_PAGE_PAGE_ASSETS_H
#define CREMA_COLLECTOR_PAGE_PAGE_ASSETS_H

#include <stddef.h>

struct page_asset {
	const char *name; /* placeholder in page.html: %name% */
	const char *text, *end;
};

enum { PAGE_HTML, PAGE_STYLE, PAGE_LIBRARY, PAGE_SCRIPT, PAGE_LICENCES, PAGE_ASSETS };

extern const struct page_asset page_assets[PAGE_ASSETS];

#endif
