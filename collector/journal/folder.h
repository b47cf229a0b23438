/* SPDX-License-Identifier: BSD-3-Clause */
/* folder.h - finds or creates the collector's folder, checks it, and locks it for this
 * collector. */
#ifndef CREMA_COLLECTOR_JOURNAL_FOLDER_H
#define CREMA_COLLECTOR_JOURNAL_FOLDER_H

#include <limits.h>

/*
 * `given` NULL: the default. Fills in both paths. Returns a descriptor whose lock keeps other
 * collectors out until it is closed, or -errno after printing a line.
 */
int folder_take(const char *given, char dir[PATH_MAX], char journal_dir[PATH_MAX]);

#endif
