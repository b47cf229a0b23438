/* SPDX-License-Identifier: BSD-3-Clause */
/* dirs.c - where crema keeps its files. */
#include "common/dirs.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"

static const char *env(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? v : NULL;
}

static int put(char *out, size_t size, const char *a, const char *b)
{
	int n = snprintf(out, size, "%s%s", a, b);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int below_home(char *out, size_t size, const char *rest)
{
	const char *home = env("HOME");

	if (!home || home[0] != '/') {
		const struct passwd *pw = getpwuid(geteuid());

		home = pw ? pw->pw_dir : NULL;
	}
	if (!home || home[0] != '/')
		return -ENOENT;
	return put(out, size, home, rest);
}

int dirs_state(char *out, size_t size, const char *given)
{
	const char *dir = given && *given ? given : env("CREMA_DIR");

	if (dir)
		return put(out, size, dir, "");
	dir = env("XDG_STATE_HOME");
	/* The specification requires that a relative path there is ignored. */
	if (dir && dir[0] == '/')
		return put(out, size, dir, "/crema");
	return below_home(out, size, "/.local/state/crema");
}

int dirs_config(char *out, size_t size)
{
	const char *dir = env("XDG_CONFIG_HOME");

	if (dir && dir[0] == '/')
		return put(out, size, dir, "/crema");
	return below_home(out, size, "/.config/crema");
}

/* In a user namespace without root, root's folders appear to belong to 65534, as /proc does. */
static bool is_another_person(uid_t uid)
{
	struct stat proc;

	if (uid < DIRS_FIRST_USER || uid == geteuid())
		return false;
	return stat("/proc", &proc) || uid != proc.st_uid;
}

/*
 * Checks whether another user may replace what is below `path`. In a folder that all may write to,
 * only the sticky bit prevents others from renaming files; nothing prevents its owner (checked if
 * `owners`). It checks from the root down to the folder itself, or to one that no other user may
 * enter: they cannot reach what is below it.
 */
static int check_parents(const char *path, bool owners, char *where, size_t size)
{
	char *real = realpath(path, NULL), end;
	struct stat st;
	int rc = real ? 0 : -errno;

	for (size_t i = 1; !rc; i++) {
		if (real[i] && real[i] != '/')
			continue;
		end = real[i];
		real[i] = '\0';
		if (stat(real, &st) < 0)
			rc = -errno;
		else if (((st.st_mode & S_IWOTH) && !(st.st_mode & S_ISVTX)) ||
			 (owners && is_another_person(st.st_uid)))
			rc = put(where, size, real, "") ? -ENAMETOOLONG : -EPERM;
		real[i] = end;
		if (!end || ((st.st_uid == 0 || st.st_uid == geteuid()) && !(st.st_mode & 077)))
			break;
	}
	free(real);
	return rc;
}

/* True if what is written there is ours, and no other user can add to it or remove it. Root's
 * folders are the administrator's choice: a service's, or a volume that belongs to a container's
 * group. */
bool dirs_is_own(const struct stat *st)
{
	if (st->st_mode & S_IWOTH)
		return false;
	if (st->st_uid == 0)
		return true;
	/* A user's private group, which has the user's number, has no other members. */
	return st->st_uid == geteuid() && (!(st->st_mode & S_IWGRP) || st->st_gid == st->st_uid);
}

static int check_own(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	return dirs_is_own(&st) ? 0 : -EPERM;
}

int dirs_make(const char *path)
{
	char part[PATH_MAX];
	struct stat st;
	size_t n = strlen(path);

	if (n == 0)
		return -ENOENT;
	if (n >= sizeof(part))
		return -ENAMETOOLONG;
	memcpy(part, path, n + 1);
	for (size_t i = 1; i <= n && stat(path, &st) < 0; i++) {
		if (part[i] != '/' && part[i] != '\0')
			continue;
		part[i] = '\0';
		if (mkdir(part, 0700) < 0 && errno != EEXIST) {
			int saved = errno;

			/* An existing parent that we may not write to is fine. */
			if (stat(part, &st) < 0)
				return -saved;
		}
		part[i] = i < n ? '/' : '\0';
	}
	if (stat(path, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? check_parents(path, false, part, sizeof(part)) : -ENOTDIR;
}

int dirs_check_own(const char *path)
{
	char where[PATH_MAX];
	int rc = check_parents(path, false, where, sizeof(where));

	return rc ? rc : check_own(path);
}

/* The folder, or the part of its path that exists. */
static int check_output(const char *path, char *where, size_t size)
{
	char part[PATH_MAX], *slash;
	struct stat st;

	if (strlen(path) >= sizeof(part))
		return -ENAMETOOLONG;
	memcpy(part, path, strlen(path) + 1);
	while (stat(part, &st) < 0) {
		slash = strrchr(part, '/');
		if (!slash)
			memcpy(part, ".", 2);
		else
			slash[slash == part] = '\0';
	}
	return check_parents(part, true, where, size);
}

int dirs_make_output(const char *path)
{
	char where[PATH_MAX];
	int rc = check_output(path, where, sizeof(where));

	return rc ? rc : dirs_make_own(path);
}

int dirs_make_own(const char *path)
{
	int rc = dirs_make(path);

	return rc ? rc : check_own(path);
}

const char *dirs_explain(char *out, size_t size, int error, const char *path)
{
	char where[PATH_MAX];
	struct stat st;

	if (error == -EPERM && check_parents(path, false, where, sizeof(where)) == -EPERM)
		snprintf(out, size,
			 "every user can replace what is in '%s'; run: chmod o-w '%s', or name "
			 "another folder",
			 where, where);
	else if (error == -EPERM && check_own(path) == -EPERM && !stat(path, &st))
		snprintf(
			out, size,
			st.st_uid && st.st_uid != geteuid()
				? "'%s' belongs to another user (uid %u); name a folder of your own"
				: "others can write to '%s' (uid %u); run: chmod go-w, or name "
				  "another folder",
			path, (unsigned int)st.st_uid);
	else if (error == -EPERM && check_output(path, where, sizeof(where)) == -EPERM &&
		 !stat(where, &st))
		snprintf(out, size,
			 "'%s' belongs to another user (uid %u), who can replace what is in it; "
			 "name "
			 "a folder elsewhere",
			 where, (unsigned int)st.st_uid);
	else
		snprintf(out, size, "cannot use '%s': %s", path, log_error(error));
	return out;
}

const char *dirs_base(const char *path, const char *unknown)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path ? path : unknown;
}

const char *dirs_text(char *out, size_t size, const char *dir, const char *const *more)
{
	size_t n;

	snprintf(out, size, "%s", dir);
	for (; more && *more; more++) {
		n = strlen(out);
		snprintf(out + n, size - n, "', '%s", *more);
	}
	return out;
}

int dirs_join(char *out, size_t size, const char *dir, const char *name)
{
	int n = snprintf(out, size, "%s/%s", dir, name);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}
