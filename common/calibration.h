/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calibration.h - what a site has proven about its file systems' storage charges.
 *
 * `crema doctor --calibrate` keeps a verdict for each file system type, kernel release and set of
 * mount options (mounts_options()) in one text file. Agents read it, and get the collector's in its
 * CALIBRATION frames. A verdict applies if all three are equal. The text is
 *
 *	crema calibration 1
 *	right|wrong TYPE KERNEL OPTIONS TIME CHARGED NEEDED WAY
 *	end LINES CRC
 *
 * with one line for each verdict, TIME in seconds since 1970, CHARGED and NEEDED in bytes, and the
 * CRC (zlib's) over all before the last line. The functions over text are pure. One thread.
 */
#ifndef CREMA_COMMON_CALIBRATION_H
#define CREMA_COMMON_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/fskind.h"
#include "common/mounts.h"

#define CALIBRATION_FIGURES 96

struct verdict {
	bool right;
	char type[64], kernel[65], options[MOUNT_OPTIONS];
	uint64_t time_s;
	uint64_t charged_bytes, needed_bytes; /* of all reads; if wrong, of those named by `way` */
	char way[32];
};

/* $CREMA_CALIBRATION, else "calibration" in the state directory (dirs_state(given)): 0, -ENOENT or
 * -ENAMETOOLONG. */
int calibration_path(char *out, size_t size, const char *given);
/* The verdict's type, kernel and options for a mount here; false: they do not fit. */
bool calibration_of(const struct mount *m, struct verdict *v);

/* Checks that [p, p+n) is a complete calibration: 0, -EPROTO (another version) or -EBADMSG
 * (damaged). */
int calibration_check(const char *p, size_t n);
/* The next verdict of a checked text; false: there is no other one. */
bool calibration_next(struct text *rest, struct verdict *v);
/* Replaces *v with the verdict for its type, kernel and options; false (and *v untouched): none. */
bool calibration_find(const struct buf *text, struct verdict *v);
/* Replaces the verdict with the same type, kernel and options, or adds it: 0 or -ENOMEM. */
int calibration_put(struct buf *text, const struct verdict *v);

/*
 * The file's text, "" if it does not exist. -EPERM: a user other than this one and root owns it
 * or can write to it; else as calibration_check(), -EFBIG or -errno. `out` is empty after an error.
 */
int calibration_read(struct buf *out, const char *path);
/*
 * The verdicts of a CALIBRATION frame's map, checked like a file's: 0 (out is empty: there are
 * none), -EFBIG (over CREMA_CALIBRATION_BYTES), -ENOMEM or as calibration_check(). `out` is empty
 * after an error.
 */
int calibration_unpack(struct buf *out, const msgpack_object *map);
/* What such an error means. */
const char *calibration_why(int error);
/* A line about an error of calibration_read(): what failed and what to do. Returns out. */
const char *calibration_explain(char *out, size_t size, int error, const char *path);

/* "charged 0 of 64 MiB (small reads)" into out (CALIBRATION_FIGURES bytes), which it returns. */
const char *calibration_figures(char *out, const struct verdict *v);
/*
 * The kind of a file system with its verdict, NULL: none. Files on FUSE and overlays are read in
 * different ways, so one file that is charged right proves nothing about the others.
 */
enum fskind calibration_kind(enum fskind kind, int64_t f_type, const struct verdict *v);

#endif
