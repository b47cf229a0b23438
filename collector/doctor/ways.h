/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ways.h - reads a cold file in one way, and compares the kernel's charge with what was read.
 *
 * The charge is what crema counts: the reading thread's ru_inblock. The truth is the page cache:
 * none of the file was in it before, so what is there afterwards was read, and it includes all
 * pages that the way touched. If pages and stored data differ in size (compressed file systems),
 * the truth is the device's own count, which other readers of the device also raise. A way that
 * reads a cached file must not be charged.
 */
#ifndef CREMA_COLLECTOR_DOCTOR_WAYS_H
#define CREMA_COLLECTOR_DOCTOR_WAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/doctor/cold.h"

struct way_result {
	bool right;
	bool skipped; /* the file system does not support it */
	uint64_t charged_bytes;
	uint64_t needed_bytes;	/* of the pages that were touched, and not in the cache before */
	uint64_t fetched_bytes; /* that came into the page cache; with O_DIRECT: that were read */
	uint64_t truth_bytes;	/* what it should be charged, if known */
	bool by_device;		/* truth_bytes are the device's */
	bool has_device, device_seen; /* device_seen: the file is known to be on it */
	uint64_t device_bytes;	      /* that its block device read meanwhile, for any process */
};

size_t ways_count(void);
/* "small reads", "mapped" ...; lower case letters and spaces only */
const char *ways_name(size_t way);
/* Runs one of them, up to three times if the numbers do not agree: 0 or -errno with c->why. */
int ways_try(struct cold *c, size_t way, struct way_result *r);
/* Only judges: sets `right` and the truth from the other members, and from those of each thread. */
void ways_judge(struct way_result *all, const struct way_result *thread, size_t threads);

#endif
