/* SPDX-License-Identifier: BSD-3-Clause */
/* target.c - the file behind a report's sink. */
#include "collector/export/target.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "collector/report/report.h"
#include "common/log.h"

static bool to_stdout(const struct target *t)
{
	return strcmp(t->path, "-") == 0;
}

static int target_flush(struct buf *out, void *arg)
{
	struct target *t = arg;
	size_t at = 0;
	ssize_t n;

	if (t->fd < 0)
		t->fd = open(t->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (t->fd < 0)
		return -errno;
	while (at < out->len) {
		n = write(t->fd, out->data + at, out->len - at);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			at += (size_t)n;
	}
	buf_clear(out);
	return 0;
}

void target_init(struct target *t, const char *path)
{
	memset(t, 0, sizeof(*t));
	t->path = path;
	t->fd = to_stdout(t) ? STDOUT_FILENO : -1;
	t->sink = (struct sink){.out = &t->buf, .flush = target_flush, .arg = t};
}

int target_close(struct target *t, struct buf *why)
{
	int rc = sink_end(&t->sink);

	if (rc == -EPIPE && to_stdout(t))
		rc = 0;
	if (!to_stdout(t) && t->fd >= 0 && close(t->fd) && !rc)
		rc = -errno;
	t->fd = -1;
	target_drop(t);
	if (!rc)
		return 0;
	return report_fail(why, rc, "cannot write '%s': %s",
			   to_stdout(t) ? "standard output" : t->path, log_error(rc));
}

void target_drop(struct target *t)
{
	if (!to_stdout(t) && t->fd >= 0)
		close(t->fd);
	t->fd = -1;
	buf_release(&t->buf);
}
