/* SPDX-License-Identifier: BSD-3-Clause */
/* page_live.h - the page without data, which requests it; see page.h. */
#ifndef CREMA_COLLECTOR_PAGE_PAGE_LIVE_H
#define CREMA_COLLECTOR_PAGE_PAGE_LIVE_H

#include <stdbool.h>

#include "collector/emit/emit.h"

void page_live(struct sink *s);
/* The page's Content-Security-Policy, with data or live. */
void page_policy(struct buf *out, bool live);

#endif
