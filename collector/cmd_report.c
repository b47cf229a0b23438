/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_report.c - `crema report`: tables on the terminal, or JSON. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/command.h"
#include "collector/report.h"
#include "common/clock.h"
#include "common/dirs.h"
#include "common/log.h"
#include "common/options.h"

struct target {
	const char *path; /* NULL: standard output */
	int fd;		  /* -1: not open yet; a failed report leaves no file */
	int error;	  /* -errno of the first failed write */
};

static int target_flush(struct buf *out, void *arg)
{
	struct target *t = arg;
	size_t at = 0;
	ssize_t n;

	if (t->fd < 0) {
		t->fd = open(t->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		if (t->fd < 0)
			return t->error = -errno;
	}
	while (at < out->len) {
		n = write(t->fd, out->data + at, out->len - at);
		if (n < 0 && errno != EINTR)
			return t->error = -errno;
		if (n > 0)
			at += (size_t)n;
	}
	buf_clear(out);
	return 0;
}

static bool want_colour(const struct target *t)
{
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

	return !t->path && isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0 &&
	       !(no && *no);
}

/* Says what the report could not: one line each. */
static int say_notice(const struct report_notice *n)
{
	if (*n->torn)
		log_line("%s", n->torn);
	if (*n->coffea)
		log_line("%s", n->coffea);
	if (*n->taskvine)
		log_line("%s", n->taskvine);
	return n->coffea_unreadable || n->taskvine_unreadable ? STATUS_FAILED : STATUS_DONE;
}

static int write_report(const struct options *o, const char *dir)
{
	const char *json = o->value[OPT_json];
	struct target target = {.path = json && strcmp(json, "-") != 0 ? json : NULL, .fd = -1};
	struct report_notice notice;
	struct report_request req = {
		.dir = dir,
		.run = o->value[OPT_run],
		.list = options_on(o, OPT_list),
		.json = json != NULL,
		.colour = want_colour(&target),
		.taskvine_log = o->value[OPT_taskvine_log],
		.coffea_report = o->value[OPT_coffea_report],
		.now_ns = clock_real_ns(),
		.flush = target_flush,
		.flush_arg = &target,
		.notice = &notice,
	};
	struct buf out = BUF_INIT;
	int rc, status;

	if (!target.path)
		target.fd = STDOUT_FILENO;
	rc = report_render(&req, &out);
	status = rc ? STATUS_FAILED : say_notice(&notice);
	if (rc == -EPIPE && !target.path)
		status = STATUS_DONE; /* the reader has seen enough */
	else if (target.error)
		log_line("cannot write '%s': %s", target.path ? target.path : "standard output",
			 log_error(target.error));
	else if (rc)
		log_line("%.*s", (int)out.len, (const char *)out.data);
	if (target.path && target.fd >= 0 && close(target.fd) && !rc) {
		log_line("cannot write '%s': %s", target.path, log_error(errno));
		status = STATUS_FAILED;
	}
	buf_release(&out);
	return status;
}

static int cmd_report_run(int argc, char **argv)
{
	struct options o;
	char dir[PATH_MAX];
	int rc, status;

	if (!command_options(&cmd_report, &o, SCOPE_REPORT, false, argc, argv, &status))
		return status;
	rc = dirs_state(dir, sizeof(dir), o.value[OPT_dir]);
	if (rc) {
		log_line("cannot find the state directory: %s; name it with --dir", log_error(rc));
		return STATUS_FAILED;
	}
	return write_report(&o, dir);
}

const struct command cmd_report = {
	.name = "report",
	.usage = "report [OPTION...]",
	.summary = "print what the tasks of a run really did",
	.run = cmd_report_run,
};
