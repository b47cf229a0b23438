/* SPDX-License-Identifier: BSD-3-Clause */
/* fskind.h - how reliable storage charges are on a type of file system, and whether hosts share its
 * files, by contract/filesystems.def. */
#ifndef CREMA_COMMON_FSKIND_H
#define CREMA_COMMON_FSKIND_H

#include <stdint.h>

#define FSKIND_NAME 24

enum fskind {
	FSKIND_UNRESOLVED,
	FSKIND_EXACT,	   /* proven: the kernel charges the reading thread */
	FSKIND_CALIBRATED, /* proven by this site (calibration.h) */
	FSKIND_NONE,	   /* no storage: memory, or the kernel's own tables */
	FSKIND_UNKNOWN
};

enum fsplace { FSPLACE_OWN, FSPLACE_SHARED, FSPLACE_EITHER };

/* Kind by statfs f_type alone; overlay is FSKIND_UNRESOLVED. name (FSKIND_NAME) gets its name. */
enum fskind fskind_of(int64_t f_type, char *name);
/* "exact", "calibrated", "none" or "unknown". */
const char *fskind_text(enum fskind kind);
/* By the name that agents send; NULL: unknown. */
enum fsplace fsplace_of(const char *name);

#endif
