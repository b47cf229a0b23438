/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * top_screen.h - the live screen of `crema top`, with ncurses.
 *
 * Runs until q, SIGINT or SIGTERM; the terminal is as before then. A collector that does not answer
 * is named in the first line, above its last numbers, and asked again each second.
 */
#ifndef CREMA_COLLECTOR_TOP_TOP_SCREEN_H
#define CREMA_COLLECTOR_TOP_TOP_SCREEN_H

#include <stddef.h>

#include "collector/top/top.h"
#include "collector/top/top_fetch.h"

/* 0, or -1 with a line in `why`: there is no usable terminal. */
int top_screen(struct fetch *fetch, struct top *top, char *why, size_t size);

#endif
