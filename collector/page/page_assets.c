/* SPDX-License-Identifier: BSD-3-Clause */
/* page_assets.c - files as they are when this is compiled. */
#include "collector/page/page_assets.h"

#define EMBED(name, file)                                                                          \
	__asm__(".section .rodata\n"                                                               \
		".global page_asset_" #name "\n"                                                   \
		".global page_asset_" #name "_end\n"                                               \
		"page_asset_" #name ":\n"                                                          \
		".incbin \"" file "\"\n"                                                           \
		"page_asset_" #name "_end:\n"                                                      \
		".byte 0\n"                                                                        \
		".previous\n");                                                                    \
	extern const char page_asset_##name[], page_asset_##name##_end[];

EMBED(html, "collector/page/page.html")
EMBED(style, "collector/page/page.css")
EMBED(library, PAGE_GEN "/library.js")
EMBED(script, PAGE_GEN "/page.js")
EMBED(licences, PAGE_GEN "/licences.txt")

#define ASSET(name)                                                                                \
	{                                                                                          \
#name, page_asset_##name, page_asset_##name##_end                                  \
	}

const struct page_asset page_assets[PAGE_ASSETS] = {
	[PAGE_HTML] = ASSET(html),	   [PAGE_STYLE] = ASSET(style),
	[PAGE_LIBRARY] = ASSET(library),   [PAGE_SCRIPT] = ASSET(script),
	[PAGE_LICENCES] = ASSET(licences),
};
