/* SPDX-License-Identifier: BSD-3-Clause */
/* dirs.c - where crema keeps its files. */
#include "common/dirs.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
	/* The specification says that a relative path there is to be ignored. */
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

int dirs_make(const char *path)
{
	char part[PATH_MAX];
	struct stat st;
	size_t n = strlen(path);

	if (n == 0)
		return -ENOENT;
	if (n >= sizeof(part))
		return -ENAMETOOLONG;
	if (stat(path, &st) == 0)
		return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
	memcpy(part, path, n + 1);
	for (size_t i = 1; i <= n; i++) {
		if (part[i] != '/' && part[i] != '\0')
			continue;
		part[i] = '\0';
		if (mkdir(part, 0700) < 0 && errno != EEXIST) {
			int saved = errno;

			/* A parent that we may not write to but that is there is fine. */
			if (stat(part, &st) < 0)
				return -saved;
		}
		part[i] = i < n ? '/' : '\0';
	}
	if (stat(path, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int dirs_join(char *out, size_t size, const char *dir, const char *name)
{
	int n = snprintf(out, size, "%s/%s", dir, name);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}
