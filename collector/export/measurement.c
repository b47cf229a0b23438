/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measurement.c - the run as a folder in roastcoffea's layout.
 *
 * A Python process makes the files from the report's JSON (python/crema/write_folder.py): all their
 * readers are Python, and keys in them are the repr() of its tuples.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/export/atomic_file.h"
#include "collector/export/export.h"
#include "collector/print/print.h"
#include "common/dirs.h"
#include "common/embed.h"
#include "common/log.h"
#include "version.h"

EMBED(measurement_script, "python/crema/write_folder.py")

#define FILES 4
#define FIRST_FD 3 /* as in the script's FILES */
#define NO_PYTHON 127

static const char *const names[FILES] = {"metrics.json", "start_end_time.txt", "config.json",
					 "metadata.json"};

struct child {
	const char *python;
	pid_t pid;
	FILE *errors;
};

static const char *python(void)
{
	const char *named = getenv("CREMA_PYTHON");

	return named && *named ? named : "python3";
}

/* Sets standard input, the files from FIRST_FD on, and errors. Moves all to higher numbers first,
 * as a descriptor may have the target number of another. */
static void give(int in, int errors, const struct atomic_file *files)
{
	int fd[FILES + 1], i, json = fcntl(in, F_DUPFD_CLOEXEC, FIRST_FD + FILES);

	for (i = 0; i < FILES; i++)
		fd[i] = fcntl(files[i].fd, F_DUPFD_CLOEXEC, FIRST_FD + FILES);
	fd[FILES] = fcntl(errors, F_DUPFD_CLOEXEC, FIRST_FD + FILES);
	dup2(json, STDIN_FILENO);
	for (i = 0; i < FILES; i++)
		dup2(fd[i], FIRST_FD + i);
	dup2(fd[FILES], STDERR_FILENO);
}

/* Returns the descriptor for the JSON, or -errno. */
static int start(struct child *child, const struct atomic_file *files)
{
	int pipe_fd[2], err;

	child->errors = tmpfile();
	if (!child->errors || pipe2(pipe_fd, O_CLOEXEC))
		return -errno;
	child->pid = fork();
	if (child->pid == 0) {
		give(pipe_fd[0], fileno(child->errors), files);
		execlp(child->python, child->python, "-I", "-c", measurement_script, CREMA_VERSION,
		       (char *)NULL);
		_exit(NO_PYTHON);
	}
	err = child->pid < 0 ? -errno : 0;
	close(pipe_fd[0]);
	if (err)
		close(pipe_fd[1]);
	return err ? err : pipe_fd[1];
}

static int to_pipe(struct buf *out, void *arg)
{
	return sink_write(*(const int *)arg, out);
}

/* Data that the child does not read is not an error here: its exit status has the reason. */
static int feed(const struct report *r, int fd)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	struct buf buf = BUF_INIT;
	struct sink sink = {.out = &buf, .flush = to_pipe, .arg = &fd};
	struct json j;
	int rc;

	sigaction(SIGPIPE, &ignore, &before);
	emit_init(&j, &sink);
	report_json(r, &j);
	rc = sink_end(&sink);
	sigaction(SIGPIPE, &before, NULL);
	buf_release(&buf);
	return rc == -EPIPE ? 0 : rc;
}

static int finish(struct child *child, const char *path, struct buf *why)
{
	char line[256] = "";
	int status;

	while (waitpid(child->pid, &status, 0) < 0) {
		if (errno != EINTR)
			return report_fail(why, -errno,
					   "cannot write '%s': cannot wait for '%s': %s", path,
					   child->python, log_error(-errno));
	}
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_PYTHON)
		return report_fail(why, -ENOENT,
				   "cannot write '%s': there is no '%s' to run: install Python 3, "
				   "or name one by CREMA_PYTHON",
				   path, child->python);
	rewind(child->errors);
	while (fgets(line, sizeof(line), child->errors))
		line[strcspn(line, "\n")] = '\0';
	return report_fail(why, -EIO,
			   "cannot write '%s': '%s' failed (%s): CREMA_PYTHON names another", path,
			   child->python, *line ? line : "without a message");
}

static int run_python(const struct report *r, const char *path, const struct atomic_file *files,
		      struct buf *why)
{
	struct sigaction usual = {.sa_handler = SIG_DFL}, before;
	struct child child = {.python = python()};
	int rc, done = 0, fd;

	/* An inherited "ignore" would prevent us from getting the Python's status. */
	sigaction(SIGCHLD, &usual, &before);
	fd = start(&child, files);
	rc = fd < 0 ? fd : feed(r, fd);
	if (fd >= 0) {
		close(fd);
		done = finish(&child, path, why);
	}
	sigaction(SIGCHLD, &before, NULL);
	if (child.errors)
		fclose(child.errors);
	if (done)
		return done;
	return rc ? report_fail(why, rc, "cannot write '%s': %s", path, log_error(rc)) : 0;
}

int export_measurement(const struct report *r, const char *path, struct buf *why)
{
	struct atomic_file files[FILES];
	char name[PATH_MAX];
	int i, n, rc = atomic_file_folder("--measurement", path, why);

	for (n = 0; n < FILES && !rc; n++) {
		rc = dirs_join(name, sizeof(name), path, names[n]);
		if (!rc)
			rc = atomic_file_init(&files[n], name);
		else
			files[n] = (struct atomic_file){.fd = -1};
		if (rc)
			report_fail(why, rc, "cannot write '%s' in '%s': %s", names[n], path,
				    log_error(rc));
	}
	if (!rc)
		rc = run_python(r, path, files, why);
	for (i = 0; i < n; i++) {
		if (!rc)
			rc = atomic_file_end(&files[i], why);
		else
			atomic_file_drop(&files[i]);
	}
	return rc;
}
