/* SPDX-License-Identifier: BSD-3-Clause */
/* folder.c - the collector's folder and its lock. */
#include "collector/journal/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/dirs.h"
#include "common/log.h"

static int fail(const char *what, const char *on, int err)
{
	log_line("collect: cannot %s '%s': %s", what, on, log_error(err));
	return err;
}

static int make(const char *dir)
{
	char line[PATH_MAX + 128];
	int err = dirs_make_own(dir);

	if (err)
		log_line("collect: %s", dirs_explain(line, sizeof(line), err, dir));
	return err;
}

static int lock(const char *path, const char *dir)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), err;

	if (fd < 0)
		return fail("open", path, -errno);
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	err = -errno;
	close(fd);
	if (err != -EWOULDBLOCK)
		return fail("lock", path, err);
	log_line("collect: another collector is using '%s'", dir);
	return -EBUSY;
}

int folder_take(const char *given, char dir[PATH_MAX], char journal_dir[PATH_MAX])
{
	char path[PATH_MAX];
	int err = dirs_state(dir, PATH_MAX, given);

	if (!err)
		err = dirs_join(journal_dir, PATH_MAX, dir, "journal");
	if (!err)
		err = dirs_join(path, sizeof(path), dir, "collect.lock");
	if (err)
		return fail("find a directory for", "the journal", err);
	err = make(dir);
	if (!err)
		err = make(journal_dir);
	return err ? err : lock(path, dir);
}
