/* SPDX-License-Identifier: BSD-3-Clause */
/* fskind.c - does the kernel charge storage bytes to the reading thread on this file system? */
#include "agent/fskind.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#define FSKIND_PSEUDO FSKIND_NONE

static const struct {
	uint32_t f_type;
	enum fskind kind;
	const char *name;
} known[] = {
#define FILESYSTEM(type, kind, name) {type, FSKIND_##kind, name},
#include "filesystems.def"
#undef FILESYSTEM
};

enum fskind fskind_of(int64_t f_type, char *name)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].f_type == (uint32_t)f_type) {
			snprintf(name, 24, "%s", known[i].name);
			return known[i].kind;
		}
	}
	snprintf(name, 24, "type 0x%x", (uint32_t)f_type);
	return FSKIND_UNKNOWN;
}

const char *fskind_text(enum fskind kind)
{
	return kind == FSKIND_EXACT ? "exact" : kind == FSKIND_NONE ? "none" : "unknown";
}

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

bool fskind_layers(const char *options, bool (*exact)(void *arg, const char *path), void *arg)
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
				if (path[0] && !exact(arg, path))
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

static bool layer_exact(void *arg, const char *path)
{
	char name[24], inside[PATH_MAX];
	struct statfs fs;
	const int *pid = arg;

	/* As the worker sees it, if its root is another one. */
	if (snprintf(inside, sizeof(inside), "/proc/%d/root%s", *pid, path) >= (int)sizeof(inside))
		return false;
	if (statfs(inside, &fs) < 0 && statfs(path, &fs) < 0)
		return false;
	return fskind_of(fs.f_type, name) == FSKIND_EXACT;
}

bool fskind_overlay_exact(int pid, uint64_t dev)
{
	char path[64], want[32];
	char *line = NULL;
	size_t size = 0;
	bool found = false, exact = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	snprintf(want, sizeof(want), " %u:%u ", major((dev_t)dev), minor((dev_t)dev));
	f = fopen(path, "re");
	if (!f)
		return false;
	while (!found && getline(&line, &size, f) > 0) {
		/* id parent major:minor root mount options [tags] - type source super-options */
		char *dash = strstr(line, " - overlay ");
		char *at = strstr(line, want);
		char *options = dash ? strchr(dash + 11, ' ') : NULL;

		if (!options || !at || at > dash)
			continue;
		found = true;
		exact = fskind_layers(options + 1, layer_exact, &pid);
	}
	free(line);
	fclose(f);
	return found && exact;
}

bool fskinds_poll(struct fskinds *f, const struct view *v, int pid)
{
	bool news = false;

	for (uint32_t i = 0; i < CREMA_SHM_FILESYSTEMS; i++) {
		struct fskind_entry *e = &f->entry[i];
		const struct crema_filesystem *s = &v->shm->filesystem[i];

		if (e->kind != FSKIND_UNRESOLVED ||
		    __atomic_load_n(&s->state, __ATOMIC_ACQUIRE) != 2)
			continue;
		e->kind = fskind_of(s->f_type, e->name);
		e->apart = e->kind == FSKIND_UNKNOWN && i != CREMA_SHM_FILESYSTEMS - 1;
		if (e->kind == FSKIND_UNRESOLVED)
			e->kind = fskind_overlay_exact(pid, s->dev) ? FSKIND_EXACT : FSKIND_UNKNOWN;
		/* The shim counts into its last entry whatever found no room. */
		if (i == CREMA_SHM_FILESYSTEMS - 1)
			e->kind = FSKIND_UNKNOWN;
		f->resolved++;
		news = true;
	}
	return news;
}

const struct fskind_entry *fskinds_get(const struct fskinds *f, uint32_t index)
{
	static const struct fskind_entry nothing = {FSKIND_UNKNOWN, false, "unknown"};

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
