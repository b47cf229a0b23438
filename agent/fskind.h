/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fskind.h - does the kernel charge storage bytes to the reading thread on this file system?
 *
 * By contract/filesystems.def: proven for ext4, xfs and btrfs ("exact"); files in memory and the
 * kernel's own tables (proc, cgroup) have no storage ("none"); overlay is
 * exact if all its layers lie on exact ones; every other one is "unknown" until a test proves it.
 * Answers are kept by index of the worker's table, so the mounts are read once per file system.
 */
#ifndef CREMA_AGENT_FSKIND_H
#define CREMA_AGENT_FSKIND_H

#include <stdbool.h>
#include <stdint.h>

#include "common/view.h"

enum fskind { FSKIND_UNRESOLVED, FSKIND_EXACT, FSKIND_NONE, FSKIND_UNKNOWN };

struct fskind_entry {
	enum fskind kind;
	bool apart;    /* unknown, and the shim knows it: it counts its charges as unsure, too */
	char name[24]; /* "ext4", "overlay", ... */
};

struct fskinds {
	struct fskind_entry entry[CREMA_SHM_FILESYSTEMS];
	unsigned int resolved; /* how many are known by now */
};

/* Kind by statfs f_type alone; overlay is FSKIND_UNRESOLVED. name (24 bytes) gets its name. */
enum fskind fskind_of(int64_t f_type, char *name);
/* Is every layer of the overlay mounted as dev (in /proc/PID/mountinfo) on an exact one? */
bool fskind_overlay_exact(int pid, uint64_t dev);
/* The layers named by one mountinfo line's options; exact() is asked for each. For tests. */
bool fskind_layers(const char *options, bool (*exact)(void *arg, const char *path), void *arg);

/* Resolves what is new in the table: true if anything was. */
bool fskinds_poll(struct fskinds *f, const struct view *v, int pid);
/* The entry of an index; one that is out of range or not there is unknown. Never NULL. */
const struct fskind_entry *fskinds_get(const struct fskinds *f, uint32_t index);
/*
 * Name of an unknown file system in a mask of indexes; NULL: none. *mixed: the charges of one of
 * them cannot be told from those of proven ones.
 */
const char *fskinds_unknown(const struct fskinds *f, uint32_t mask, bool *mixed);
/* "exact", "none" or "unknown". */
const char *fskind_text(enum fskind kind);

#endif
