/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fskinds.h - whether the kernel charges storage bytes to the reading thread on a worker's file
 * systems.
 *
 * By contract/filesystems.def (common/fskind.h): proven for ext4, xfs and btrfs ("exact"); files in
 * memory and the kernel's own tables (proc, cgroup) have no storage ("none"); overlay is exact if
 * all its layers are on known ones; every other one is "unknown" unless the site has proven it
 * ("calibrated", common/calibration.h). A calibration that found wrong charges makes any of them
 * unknown. Verdicts come from this machine's file and from the collector; the file's apply first.
 * Results are kept by index of the worker's table, so mounts and file are read once per file
 * system, and again when the collector sends other verdicts. One thread.
 */
#ifndef CREMA_AGENT_FSKINDS_H
#define CREMA_AGENT_FSKINDS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/calibration.h"
#include "common/mounts.h"
#include "common/view.h"

struct fskind_entry {
	enum fskind kind;
	bool apart;		/* unknown to the shim, too: it also counts its charges as unsure */
	char name[FSKIND_NAME]; /* "ext4", "overlay", ... */
	char figures[CALIBRATION_FIGURES]; /* what its calibration found; "": none */
	/* Of its mount when it was decided; 0: unknown, or another one since. */
	uint32_t options_crc;
};

struct fskinds {
	struct fskind_entry entry[CREMA_SHM_FILESYSTEMS];
	unsigned int resolved;	      /* how many are known by now */
	bool warned;		      /* about a calibration that cannot be used */
	char trouble[PATH_MAX + 192]; /* why; "": nothing new. The caller logs and clears it */
	bool changed;		      /* by fskinds_recheck() */
	struct buf shipped;	      /* the collector's verdicts; "": none */
	bool again;		      /* they are new: everything is decided again */
	bool shipped_warned;
	uint32_t moved; /* bit i: entry[i] was decided, or differently than before. The caller
			   clears it */
};

/* The layers named by one mountinfo line's options; known() is called for each. For tests. */
bool fskind_layers(const char *options, bool (*known)(void *arg, const char *path), void *arg);

/*
 * Replaces the name "fuse" (FSKIND_NAME bytes) by what its mount is known as: its type with a
 * subtype ("fuse.eosxd"), else a source that is a plain word ("fuse (cvmfs2)").
 */
void fskind_name_fuse(char *name, const struct mount *m);

void fskinds_release(struct fskinds *f);
/* Takes the collector's verdicts (calibration_unpack()) for the next fskinds_poll(). error: they
 * are ignored, and the ones before stay. */
void fskinds_ship(struct fskinds *f, const struct buf *text, int error);
/* Resolves what is new in the table: true if anything was, or has changed. */
bool fskinds_poll(struct fskinds *f, const struct view *v, int pid);
/*
 * Once a second: a device's number may be used again for another mount. What is calibrated and then
 * has other options is unknown from then on; the next fskinds_poll() reports it.
 */
void fskinds_recheck(struct fskinds *f, const struct view *v, int pid);
/* The entry of an index; one that is out of range or missing is unknown. Never NULL. */
const struct fskind_entry *fskinds_get(const struct fskinds *f, uint32_t index);
/*
 * Name of an unknown file system in a mask of indexes; NULL: none. *mixed: the charges of one of
 * them cannot be separated from those of proven ones.
 */
const char *fskinds_unknown(const struct fskinds *f, uint32_t mask, bool *mixed);
#endif
