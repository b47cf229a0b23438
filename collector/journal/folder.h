/* SPDX-License-Identifier: BSD-3-Clause */
/* folder.h - the collector's folder: found or made, checked, and taken for this collector only. */
#ifndef CREMA_COLLECTOR_JOURNAL_FOLDER_H
#define CREMA_COLLECTOR_JOURNAL_FOLDER_H

#include <limits.h>

/*
 * `given` NULL: the usual one. Fills both paths; returns a descriptor whose lock keeps other
 * collectors out until it is closed, or -errno after a line.
 */
int folder_take(const char *given, char dir[PATH_MAX], char journal_dir[PATH_MAX]);

#endif
