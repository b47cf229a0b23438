/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * top_screen.h - the live screen of `crema top`, with ncurses.
 *
 * It runs until q, SIGINT or SIGTERM, and then restores the terminal. If the collector does
 * not respond, the first line reports it above the last numbers, and the request is repeated
 * each second.
 */
#ifndef CREMA_COLLECTOR_TOP_TOP_SCREEN_H
#define CREMA_COLLECTOR_TOP_TOP_SCREEN_H

#include <stddef.h>

#include "collector/top/top.h"
#include "collector/top/top_fetch.h"

/* 0, or -1 with a line in `why`: there is no usable terminal. */
int top_screen(struct fetch *fetch, struct top *top, char *why, size_t size);

#endif
