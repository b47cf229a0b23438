/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mountstats.h - how much the mounts of network file systems read from servers, and programs from
 * them.
 *
 * NFS: /proc/self/mountstats ("statvers=1.0" and "1.1": both have the line "bytes:" with eight
 * numbers). Lustre: the stats files of llite (what programs read) and osc (what servers sent), if
 * they are in /proc; newer versions have them in debugfs, which only root can read. CephFS has such
 * numbers in debugfs only. Counts of programs include O_DIRECT, but not mapped files. The parsers
 * are pure functions over text that need not end with a NUL. One thread.
 */
#ifndef CREMA_COMMON_MOUNTSTATS_H
#define CREMA_COMMON_MOUNTSTATS_H

#include <stdint.h>

#include "common/pack.h"

struct mount_bytes {
	int error;		    /* -errno: the rest is unknown */
	uint64_t mounts;	    /* each file system once, however often it is mounted */
	uint32_t set;		    /* identifies them: sums of different sets cannot be compared */
	uint64_t read_bytes;	    /* by programs */
	uint64_t server_read_bytes; /* from servers */
};

/* All NFS mounts; mountinfo has their devices. 0, -EBADMSG: one has no such numbers. */
int mountstats_sum(struct text mountstats, struct text mountinfo, struct mount_bytes *out);
/* The sum in one stats file of Lustre; 0 bytes if nothing was read. 0 or -EBADMSG. */
int lustre_read_sum(struct text stats, uint64_t *bytes);

/* Reads the files below `proc` ("/proc"), of both kinds. No such mount: all 0. */
void mount_bytes_read(const char *proc, struct mount_bytes *nfs, struct mount_bytes *lustre);

#endif
