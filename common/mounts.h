/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mounts.h - the lines of /proc/PID/mountinfo.
 *
 * Pure functions over text that need not end with a NUL: results point into it. Lines that do not
 * have the kernel's format are skipped.
 */
#ifndef CREMA_COMMON_MOUNTS_H
#define CREMA_COMMON_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/pack.h"

#define MOUNT_OPTIONS 1024

struct mount {
	uint64_t id, dev;
	struct text point, type, source; /* the kernel writes spaces and '\' in them as \ooo */
	struct text options;		 /* of the file system, not of this mount */
};

/* The beginning of a text up to the separator; both are removed from it. */
struct text mounts_take(struct text *from, char separator);
/* The next mount of a text, which is removed from its beginning; false: there is no other one. */
bool mounts_next(struct text *rest, struct mount *m);
/* The first mount of the device; false: there is none. */
bool mounts_find(struct text all, uint64_t dev, struct mount *m);
/*
 * The options that decide how a file system reads, into `out` (MOUNT_OPTIONS bytes): without
 * the hosts' addresses, which differ between the nodes of a site. false: they do not fit.
 */
bool mounts_options(const struct mount *m, char *out);

#endif
