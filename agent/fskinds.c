/* SPDX-License-Identifier: BSD-3-Clause */
/* fskinds.c - whether the kernel charges storage bytes to the reading thread (fskinds.h). */
#include "agent/fskinds.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "common/inflate.h"
#include "common/procfs.h"

/* The texts that decide, read when a file system is new. */
struct sources {
	int pid;
	struct buf mounts, calibration;
	const struct buf *shipped;
	bool calibrated; /* a layer is known only by a calibration */
};

/* One path of an option's list: up to ':' or ',' or the end; "\:" is a colon, "\054" a comma. */
static const char *take_path(const char *s, char *out, size_t size)
{
	size_t n = 0;

	while (*s && *s != ':' && *s != ',' && *s != '\n' && *s != ' ') {
		int c = (unsigned char)*s++;

		if (c == '\\' && s[0] >= '0' && s[0] <= '3' && s[1] && s[2]) {
			c = (s[0] - '0') * 64 + (s[1] - '0') * 8 + (s[2] - '0');
			s += 3;
		} else if (c == '\\' && *s) {
			c = (unsigned char)*s++;
		}
		if (n + 1 < size)
			out[n++] = (char)c;
	}
	out[n] = '\0';
	return s;
}

bool fskind_layers(const char *options, bool (*known)(void *arg, const char *path), void *arg)
{
	static const char *const names[] = {"lowerdir=", "lowerdir+=", "datadir+=", "upperdir="};
	char path[PATH_MAX];
	unsigned int layers = 0;

	while (*options) {
		const char *end = options;

		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			size_t n = strlen(names[i]);

			if (strncmp(options, names[i], n) != 0)
				continue;
			end = options + n;
			do {
				end = take_path(end, path, sizeof(path));
				/* A relative path or "::" cannot be judged from here. */
				if (path[0] != '/' && !(path[0] == '\0' && *end == ':'))
					return false;
				if (path[0] && !known(arg, path))
					return false;
				layers++;
			} while (*end == ':' && *++end);
			break;
		}
		end = strchr(end, ',');
		if (!end)
			break;
		options = end + 1;
	}
	return layers > 0;
}

static void resolve(struct sources *s, int64_t f_type, uint64_t dev, struct fskind_entry *e);

static bool layer_known(void *arg, const char *path)
{
	struct sources *s = arg;
	struct fskind_entry e;
	char inside[PATH_MAX];
	struct statfs fs;
	struct stat st;

	/* As the worker sees it, in case its root is another one. */
	if (snprintf(inside, sizeof(inside), "/proc/%d/root%s", s->pid, path) >=
	    (int)sizeof(inside))
		return false;
	if ((statfs(inside, &fs) || stat(inside, &st)) && (statfs(path, &fs) || stat(path, &st)))
		return false;
	/* A layer that is itself an overlay would have to be followed further. */
	if (fskind_of(fs.f_type, e.name) == FSKIND_UNRESOLVED)
		return false;
	resolve(s, fs.f_type, st.st_dev, &e);
	s->calibrated |= e.kind == FSKIND_CALIBRATED;
	return e.kind == FSKIND_EXACT || e.kind == FSKIND_CALIBRATED;
}

static enum fskind overlay_kind(struct sources *s, const struct mount *m)
{
	char *options = strndup(m->options.ptr, m->options.len);
	bool known;

	s->calibrated = false;
	known = options && fskind_layers(options, layer_known, s);
	free(options);
	return !known ? FSKIND_UNKNOWN : s->calibrated ? FSKIND_CALIBRATED : FSKIND_EXACT;
}

static uint32_t crc_of(const struct verdict *v)
{
	return inflate_crc(inflate_crc(0, v->type, strlen(v->type)), v->options,
			   strlen(v->options));
}

/* Not a path, a host or an address, which a source may be, too. */
static bool is_word(struct text t)
{
	for (size_t i = 0; i < t.len; i++)
		if (!isalnum((unsigned char)t.ptr[i]) && t.ptr[i] != '-' && t.ptr[i] != '_')
			return false;
	return t.len > 0;
}

void fskind_name_fuse(char *name, const struct mount *m)
{
	static const char sub[] = "fuse.";

	if (m->type.len > strlen(sub) && m->type.len < FSKIND_NAME &&
	    !memcmp(m->type.ptr, sub, strlen(sub)))
		snprintf(name, FSKIND_NAME, "%.*s", (int)m->type.len, m->type.ptr);
	else if (text_is(m->type, "fuse") && is_word(m->source) &&
		 m->source.len + sizeof("fuse ()") <= FSKIND_NAME)
		snprintf(name, FSKIND_NAME, "fuse (%.*s)", (int)m->source.len, m->source.ptr);
}

static void resolve(struct sources *s, int64_t f_type, uint64_t dev, struct fskind_entry *e)
{
	struct text all = {(const char *)s->mounts.data, s->mounts.len};
	struct verdict v;
	struct mount m;
	bool found;

	*e = (struct fskind_entry){.kind = FSKIND_UNKNOWN};
	e->kind = fskind_of(f_type, e->name);
	e->apart = e->kind == FSKIND_UNKNOWN;
	if (e->kind == FSKIND_NONE)
		return;
	found = mounts_find(all, dev, &m);
	if (found && !strcmp(e->name, "fuse"))
		fskind_name_fuse(e->name, &m);
	if (e->kind == FSKIND_UNRESOLVED)
		e->kind = found ? overlay_kind(s, &m) : FSKIND_UNKNOWN;
	if (!found || !calibration_of(&m, &v))
		return;
	e->options_crc = crc_of(&v);
	if (!calibration_find(&s->calibration, &v) && !calibration_find(s->shipped, &v))
		return;
	e->kind = calibration_kind(e->kind, f_type, &v);
	calibration_figures(e->figures, &v);
}

/* Without them, everything that depends on them is unknown. */
static void open_sources(struct fskinds *f, struct sources *s, int pid)
{
	char path[PATH_MAX], line[PATH_MAX + 160];
	int rc = calibration_path(path, sizeof(path), NULL);

	*s = (struct sources){.pid = pid, .shipped = &f->shipped};
	if (procfs_slurp_all(&s->mounts, "/proc/%d/mountinfo", pid))
		buf_clear(&s->mounts);
	rc = rc ? 0 : calibration_read(&s->calibration, path);
	if (rc && !f->warned)
		snprintf(f->trouble, sizeof(f->trouble), "calibration %s",
			 calibration_explain(line, sizeof(line), rc, path));
	f->warned |= rc != 0;
}

void fskinds_release(struct fskinds *f)
{
	buf_release(&f->shipped);
}

void fskinds_ship(struct fskinds *f, const struct buf *text, int error)
{
	if (!error && text->len == f->shipped.len &&
	    (!text->len || !memcmp(text->data, f->shipped.data, text->len)))
		return;
	if (!error) {
		buf_clear(&f->shipped);
		error = buf_add(&f->shipped, text->data, text->len);
		f->again = true;
	}
	if (error && !f->shipped_warned)
		snprintf(f->trouble, sizeof(f->trouble),
			 "the collector's calibration is ignored: %s", calibration_why(error));
	f->shipped_warned |= error != 0;
}

/* Decides entry i, or decides it again; true if that is news. */
static bool decide(struct fskinds *f, struct sources *sources, const struct crema_filesystem *s,
		   uint32_t i)
{
	struct fskind_entry now, *e = &f->entry[i];
	bool first = e->kind == FSKIND_UNRESOLVED;

	resolve(sources, s->f_type, s->dev, &now);
	/* The shim counts everything that found no room in its last entry. */
	if (i == CREMA_SHM_FILESYSTEMS - 1) {
		now.kind = FSKIND_UNKNOWN;
		now.apart = false;
	}
	/* What was counted on another mount with this device's number is not proven by this one. */
	if (!first && (now.options_crc != e->options_crc ||
		       (now.kind == e->kind && !strcmp(now.figures, e->figures))))
		return false;
	/* A first read may have been recorded before this. */
	if (now.kind != e->kind)
		f->moved |= 1u << i;
	f->resolved += first;
	*e = now;
	return true;
}

bool fskinds_poll(struct fskinds *f, const struct view *v, int pid)
{
	struct sources sources;
	bool opened = false, news = f->changed;

	for (uint32_t i = 0; i < CREMA_SHM_FILESYSTEMS; i++) {
		const struct crema_filesystem *s = &v->shm->filesystem[i];

		if ((f->entry[i].kind != FSKIND_UNRESOLVED && !f->again) ||
		    __atomic_load_n(&s->state, __ATOMIC_ACQUIRE) != 2)
			continue;
		if (!opened)
			open_sources(f, &sources, pid);
		opened = true;
		news |= decide(f, &sources, s, i);
	}
	if (opened) {
		buf_release(&sources.mounts);
		buf_release(&sources.calibration);
	}
	f->again = f->changed = false;
	return news;
}

void fskinds_recheck(struct fskinds *f, const struct view *v, int pid)
{
	struct buf mounts = BUF_INIT;

	for (uint32_t i = 0; i < CREMA_SHM_FILESYSTEMS; i++) {
		struct fskind_entry *e = &f->entry[i];
		struct verdict now;
		struct mount m;

		/* An overlay's layers stay as they are while it is mounted. */
		if (e->kind != FSKIND_CALIBRATED || !e->options_crc)
			continue;
		if (!mounts.len && procfs_slurp_all(&mounts, "/proc/%d/mountinfo", pid))
			break;
		if (!mounts_find((struct text){(const char *)mounts.data, mounts.len},
				 v->shm->filesystem[i].dev, &m) ||
		    (calibration_of(&m, &now) && crc_of(&now) == e->options_crc))
			continue;
		e->kind = FSKIND_UNKNOWN;
		e->figures[0] = '\0';
		e->options_crc = 0;
		f->changed = true;
	}
	buf_release(&mounts);
}

const struct fskind_entry *fskinds_get(const struct fskinds *f, uint32_t index)
{
	static const struct fskind_entry nothing = {FSKIND_UNKNOWN, false, "unknown", "", 0};

	if (index >= CREMA_SHM_FILESYSTEMS || f->entry[index].kind == FSKIND_UNRESOLVED)
		return &nothing;
	return &f->entry[index];
}

const char *fskinds_unknown(const struct fskinds *f, uint32_t mask, bool *mixed)
{
	const char *name = NULL;

	*mixed = false;
	for (uint32_t i = 0; i < CREMA_SHM_FILESYSTEMS; i++) {
		const struct fskind_entry *e = fskinds_get(f, i);

		if (!(mask >> i & 1u) || e->kind != FSKIND_UNKNOWN)
			continue;
		name = name ? name : e->name;
		*mixed |= !e->apart;
	}
	return name;
}
