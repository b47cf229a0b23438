/* SPDX-License-Identifier: BSD-3-Clause */
/* calibrate.c - determines the verdict on a file system, and stores it (calibrate.h). */
#include "collector/doctor/calibrate.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "collector/doctor/ways.h"
#include "collector/export/atomic_file.h"
#include "common/calibration.h"
#include "common/dirs.h"
#include "common/log.h"
#include "common/procfs.h"

#define ABOUT "calibration"
#define DATE_BYTES 16

/* By the mount's number: on btrfs a file's device is not the mount's. */
static bool mount_of(int fd, const struct buf *mounts, struct mount *m)
{
	struct text rest = {(const char *)mounts->data, mounts->len};
	uint64_t id;
	char text[4096];

	if (procfs_slurp(text, sizeof(text), "/proc/self/fdinfo/%d", fd) <= 0 ||
	    !procfs_number(text, "mnt_id:\t", &id))
		return false;
	while (mounts_next(&rest, m))
		if (m->id == id)
			return true;
	return false;
}

/* The block device with the file's device number, else the mounted one. */
static dev_t device_of(int fd, const struct mount *m)
{
	char path[PATH_MAX];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return 0;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/stat", major(st.st_dev),
		 minor(st.st_dev));
	if (!access(path, R_OK))
		return st.st_dev;
	text_copy(path, sizeof(path), m->source);
	return !stat(path, &st) && S_ISBLK(st.st_mode) ? st.st_rdev : 0;
}

static void say_way(struct doctor *d, const char *name, const struct way_result *r)
{
	if (r->skipped)
		doctor_say(d, DOCTOR_OK, ABOUT, "%s: not possible there", name);
	else
		doctor_say(d, r->right ? DOCTOR_OK : DOCTOR_BAD, ABOUT,
			   "%s: charged %" PRIu64 " of %" PRIu64 " bytes (by the %s)", name,
			   r->charged_bytes, r->truth_bytes,
			   r->by_device ? "device" : "page cache");
}

/* Tries all ways: 0 with the verdict's numbers, or -errno. */
static int try_all(struct doctor *d, struct cold *c, struct verdict *v)
{
	struct way_result r;
	int rc;

	v->right = true;
	snprintf(v->way, sizeof(v->way), "all");
	for (size_t i = 0; i < ways_count(); i++) {
		rc = ways_try(c, i, &r);
		if (rc)
			return rc;
		say_way(d, ways_name(i), &r);
		if (r.skipped || !v->right)
			continue;
		if (!r.right) {
			v->right = false;
			v->charged_bytes = v->needed_bytes = 0;
			snprintf(v->way, sizeof(v->way), "%s", ways_name(i));
		}
		v->charged_bytes += r.charged_bytes;
		v->needed_bytes += r.truth_bytes;
	}
	return 0;
}

/* Written next to its path and renamed: readers find a complete file. */
static int keep(const char *dir, const struct verdict *v, char *path, char *why, size_t size)
{
	struct buf text = BUF_INIT, trouble = BUF_INIT;
	struct atomic_file file;
	char folder[PATH_MAX];
	int rc = calibration_path(path, PATH_MAX, dir);
	char *slash;

	snprintf(folder, sizeof(folder), "%s", rc ? "" : path);
	slash = strrchr(folder, '/');
	if (slash && slash > folder) {
		*slash = '\0';
		rc = dirs_make(folder);
	}
	if (rc) {
		dirs_explain(why, size, rc, folder);
		return rc;
	}
	rc = calibration_read(&text, path);
	if (rc) {
		calibration_explain(why, size, rc, path);
		return rc;
	}
	rc = calibration_put(&text, v);
	rc = rc ? rc : atomic_file_init(&file, path);
	if (!rc) {
		sink_put(&file.sink, (char *)text.data, text.len);
		rc = atomic_file_end(&file, &trouble);
	}
	if (rc)
		snprintf(why, size, "cannot write '%s': %s", path, log_error(rc));
	buf_release(&trouble);
	buf_release(&text);
	return rc;
}

/* The consequences of the verdict for workers. */
static void say_verdict(struct doctor *d, const struct verdict *v, int64_t f_type)
{
	char name[FSKIND_NAME], figures[CALIBRATION_FIGURES], path[PATH_MAX], why[PATH_MAX + 160];
	enum fskind by_table = fskind_of(f_type, name),
		    kind = calibration_kind(by_table, f_type, v);

	calibration_figures(figures, v);
	if (v->right && by_table != FSKIND_EXACT && kind != FSKIND_CALIBRATED) {
		doctor_say(d, DOCTOR_WARN, ABOUT, "%s: %s, but %s", v->type, figures,
			   by_table == FSKIND_UNRESOLVED
				   ? "its layers decide what other files are charged"
				   : "its server may serve other files itself");
		doctor_advise(d,
			      by_table == FSKIND_UNRESOLVED
				      ? "calibrate the file systems of its layers: an overlay of "
					"known ones is known"
				      : "storage bytes remain unknown there");
		return;
	}
	if (keep(d->dir, v, path, why, sizeof(why))) {
		doctor_say(d, DOCTOR_BAD, ABOUT, "the verdict cannot be kept: %s", why);
		doctor_advise(d, "name a file of your own with CREMA_CALIBRATION");
		return;
	}
	doctor_say(d, v->right ? DOCTOR_OK : DOCTOR_BAD, ABOUT, "%s on Linux %s with %s: %s",
		   v->type, v->kernel, v->options, figures);
	doctor_advise(
		d,
		"storage bytes are %s there; kept in '%s' for workers that start now, and for "
		"all workers of a collector with this data directory: copy it into the data "
		"directory of another collector",
		v->right ? (kind == FSKIND_EXACT ? "exact" : "known (\"calibrated\")") : "unknown",
		path);
}

static void calibrate(struct doctor *d, struct cold *c, const char *path)
{
	struct buf mounts = BUF_INIT;
	char name[FSKIND_NAME];
	struct verdict v;
	struct statfs fs;
	struct mount m;
	int rc = statfs(path, &fs);

	if (!rc && fskind_of(fs.f_type, name) == FSKIND_NONE) {
		doctor_say(d, DOCTOR_BAD, ABOUT, "'%s' is on %s: nothing there comes from storage",
			   path, name);
	} else if (cold_open(c, path)) {
		doctor_say(d, DOCTOR_BAD, ABOUT, "%s", c->why);
	} else if (rc || procfs_slurp_all(&mounts, "/proc/self/mountinfo") ||
		   !mount_of(c->fd[0], &mounts, &m) || !calibration_of(&m, &v)) {
		doctor_say(d, DOCTOR_BAD, ABOUT, "the kernel does not show the mount of '%s'",
			   path);
	} else if (c->device = device_of(c->fd[0], &m), try_all(d, c, &v)) {
		doctor_say(d, DOCTOR_BAD, ABOUT, "'%s' is on %s: %s", path, v.type, c->why);
	} else {
		v.time_s = (uint64_t)time(NULL);
		say_verdict(d, &v, fs.f_type);
	}
	buf_release(&mounts);
}

void doctor_calibrate(struct doctor *d, const char *path)
{
	struct cold c = COLD_INIT;

	calibrate(d, &c, path);
	cold_close(&c);
}

static void say_known(struct doctor *d, const struct mount *m, const struct verdict *v)
{
	char figures[CALIBRATION_FIGURES], date[DATE_BYTES];
	time_t when = (time_t)v->time_s;
	struct tm day;

	strftime(date, sizeof(date), "%Y-%m-%d", gmtime_r(&when, &day));
	doctor_say(d, v->right ? DOCTOR_OK : DOCTOR_WARN, ABOUT, "%s at '%.*s': %s, on %s", v->type,
		   (int)m->point.len, m->point.ptr, calibration_figures(figures, v), date);
	if (!v->right)
		doctor_advise(d, "storage bytes are unknown there");
}

/* Verdicts on the type, none of which applies. */
static void say_stale(struct doctor *d, const struct mount *m, const struct buf *text,
		      const struct verdict *here)
{
	struct text rest = {(const char *)text->data, text->len};
	struct verdict v;

	while (calibration_next(&rest, &v)) {
		if (strcmp(v.type, here->type))
			continue;
		doctor_say(d, DOCTOR_WARN, ABOUT, "%s at '%.*s' was calibrated with %s %s", v.type,
			   (int)m->point.len, m->point.ptr,
			   strcmp(v.kernel, here->kernel) ? "Linux" : "the options",
			   strcmp(v.kernel, here->kernel) ? v.kernel : v.options);
		doctor_advise(d, "that verdict no longer applies: crema doctor --calibrate '%.*s'",
			      (int)m->point.len, m->point.ptr);
		return;
	}
}

void doctor_calibrations(struct doctor *d)
{
	struct buf text = BUF_INIT, mounts = BUF_INIT;
	char path[PATH_MAX], line[PATH_MAX + 160];
	struct verdict v;
	struct text rest;
	struct mount m;
	int rc = calibration_path(path, sizeof(path), d->dir);

	if (!rc && (rc = calibration_read(&text, path)) != 0) {
		doctor_say(d, DOCTOR_WARN, ABOUT, "%s",
			   calibration_explain(line, sizeof(line), rc, path));
		doctor_advise(d, "until then storage bytes are known on ext4, xfs and btrfs only");
	}
	if (!procfs_slurp_all(&mounts, "/proc/self/mountinfo")) {
		rest = (struct text){(const char *)mounts.data, mounts.len};
		while (text.len && mounts_next(&rest, &m)) {
			if (!calibration_of(&m, &v))
				continue;
			if (calibration_find(&text, &v))
				say_known(d, &m, &v);
			else
				say_stale(d, &m, &text, &v);
		}
	}
	buf_release(&mounts);
	buf_release(&text);
}
