/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stuck.h - `crema stuck`: the tasks of live.json that have been in one place for long, one
 * paragraph each. All text is printable ASCII, as in top.h.
 */
#ifndef CREMA_COLLECTOR_TOP_STUCK_H
#define CREMA_COLLECTOR_TOP_STUCK_H

#include <stddef.h>
#include <stdio.h>

/* Those of `longer` seconds and more: 0, or -EBADMSG: that is no live.json. */
int stuck_print(FILE *out, const char *json, size_t n, double longer);

#endif
