/* SPDX-License-Identifier: BSD-3-Clause */
/* page_assets.c - the files as of compile time. */
#include "collector/page/page_assets.h"

#include "common/embed.h"

EMBED(page_asset_html, "collector/page/page.html")
EMBED(page_asset_style, "collector/page/page.css")
EMBED(page_asset_library, PAGE_GEN "/library.js")
EMBED(page_asset_script, PAGE_GEN "/page.js")
EMBED(page_asset_licences, PAGE_GEN "/licences.txt")

#define ASSET(name)                                                                                \
	{                                                                                          \
#name, page_asset_##name, page_asset_##name##_end                                  \
	}

const struct page_asset page_assets[PAGE_ASSETS] = {
	[PAGE_HTML] = ASSET(html),	   [PAGE_STYLE] = ASSET(style),
	[PAGE_LIBRARY] = ASSET(library),   [PAGE_SCRIPT] = ASSET(script),
	[PAGE_LICENCES] = ASSET(licences),
};
