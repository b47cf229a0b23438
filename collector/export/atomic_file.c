/* SPDX-License-Identifier: BSD-3-Clause */
/* atomic_file.c - a file that appears whole or not at all. */
#include "collector/export/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/print/render.h"
#include "common/dirs.h"
#include "common/log.h"

static int atomic_file_flush(struct buf *out, void *arg)
{
	struct atomic_file *d = arg;

	return sink_write(d->fd, out);
}

/* Makes the pattern of the temporary name for mkostemp(), in the folder of the path. */
static int name_temp(struct atomic_file *d)
{
	const char *slash = strrchr(d->path, '/');
	int dir = slash ? (int)(slash - d->path) + 1 : 0, n;

	n = snprintf(d->temp, sizeof(d->temp), "%.*s.%.200s.crema-XXXXXX", dir, d->path,
		     d->path + dir);
	return n < 0 || (size_t)n >= sizeof(d->temp) ? -ENAMETOOLONG : 0;
}

/* Resolves the path, and determines whether it can be replaced. */
static int find_place(struct atomic_file *d, const char *path)
{
	struct stat st;
	char *real;

	if (!*path)
		return -ENOENT;
	if (strlen(path) >= sizeof(d->path))
		return -ENAMETOOLONG;
	memcpy(d->path, path, strlen(path) + 1);
	if (stat(path, &st))
		return errno == ENOENT ? name_temp(d) : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	/* /dev/stdout may be a regular file, but another process holds it open */
	if (!S_ISREG(st.st_mode) || !strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6))
		return 0;
	real = realpath(path, NULL);
	if (!real)
		return -errno;
	if (strlen(real) >= sizeof(d->path)) {
		free(real);
		return -ENAMETOOLONG;
	}
	memcpy(d->path, real, strlen(real) + 1);
	free(real);
	/* If another user owns the file, its permissions must not let that user write to ours. */
	d->mode = st.st_mode & (st.st_uid == geteuid() ? 0777 : 0755);
	return name_temp(d);
}

int atomic_file_init(struct atomic_file *d, const char *path)
{
	memset(d, 0, sizeof(*d));
	d->fd = -1;
	snprintf(d->path, sizeof(d->path), "%s", path);
	d->sink = (struct sink){.out = &d->buf, .flush = atomic_file_flush, .arg = d};
	if (!strcmp(path, "-")) {
		d->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		snprintf(d->path, sizeof(d->path), "standard output");
		d->error = d->fd < 0 ? -errno : 0;
		return d->error;
	}
	d->error = find_place(d, path);
	if (d->error)
		return d->error;
	if (*d->temp)
		d->fd = mkostemp(d->temp, O_CLOEXEC); /* 0600, and never an existing file */
	else
		d->fd = open(d->path, O_WRONLY | O_CLOEXEC);
	if (d->fd < 0) {
		d->error = -errno;
		*d->temp = '\0';
	} else if (d->mode) {
		fchmod(d->fd, d->mode);
	}
	return d->error;
}

int atomic_file_finish(struct atomic_file *d)
{
	if (!d->error)
		d->error = sink_end(&d->sink);
	if (d->error == -EPIPE && !*d->temp)
		d->error = 0; /* the reader of a pipe may have closed it early */
	if (!d->error && *d->temp && fsync(d->fd))
		d->error = -errno;
	return d->error;
}

int atomic_file_close(struct atomic_file *d)
{
	int rc = atomic_file_finish(d);

	if (d->fd >= 0 && close(d->fd) && !rc)
		rc = -errno;
	d->fd = -1;
	if (!rc && *d->temp && rename(d->temp, d->path))
		rc = -errno;
	if (!rc)
		*d->temp = '\0';
	atomic_file_drop(d);
	return rc;
}

int atomic_file_end(struct atomic_file *d, struct buf *why)
{
	int rc = atomic_file_close(d);

	return rc ? report_fail(why, rc, "cannot write '%s': %s", d->path, log_error(rc)) : 0;
}

void atomic_file_drop(struct atomic_file *d)
{
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
	if (*d->temp)
		unlink(d->temp);
	*d->temp = '\0';
	buf_release(&d->buf);
}

int atomic_file_folder(const char *option, const char *path, struct buf *why)
{
	char line[PATH_MAX + 128];
	int rc;

	if (!strcmp(path, "-"))
		return report_fail(why, -EINVAL, "%s writes several files: name a folder for them",
				   option);
	rc = dirs_make_output(path);
	return rc ? report_fail(why, rc, "%s", dirs_explain(line, sizeof(line), rc, path)) : 0;
}
