/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stuck.h - `crema stuck`: prints the tasks of live.json that have been in one place for long, one
 * paragraph each.
 *
 * All text is printable ASCII, as in top.h.
 */
#ifndef CREMA_COLLECTOR_TOP_STUCK_H
#define CREMA_COLLECTOR_TOP_STUCK_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

/* Prints those of at least `longer` seconds: 0, or -EBADMSG: not a live.json. */
int stuck_print(FILE *out, const char *json, size_t n, double longer);

/*
 * Passes one line to line() for each paused worker and each task in a call for that long, in the
 * order of live.json. Returns their number.
 */
size_t stuck_each(const json_t *live, double longer, void (*line)(void *arg, const char *text),
		  void *arg);

#endif
