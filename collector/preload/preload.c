/* SPDX-License-Identifier: BSD-3-Clause */
/* preload.c - finds the library, tests it with a harmless program, and executes the command. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collector/preload/preload.h"
#include "common/dirs.h"
#include "common/log.h"

#define TRIAL_MS 10000
#define TRIAL_POLL_MS 5

int preload_find(const char *exe, char *path, size_t size)
{
	static const char *const place[] = {"libcrema.so", "../lib/crema/libcrema.so"};
	const char *slash = strrchr(exe, '/');
	char candidate[PATH_MAX], real[PATH_MAX];
	size_t i;
	int n;

	for (i = 0; slash && i < sizeof(place) / sizeof(place[0]); i++) {
		n = snprintf(candidate, sizeof(candidate), "%.*s/%s", (int)(slash - exe), exe,
			     place[i]);
		if (n < 0 || (size_t)n >= sizeof(candidate))
			return -ENAMETOOLONG;
		if (access(candidate, R_OK) || !realpath(candidate, real))
			continue;
		n = snprintf(path, size, "%s", real);
		return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
	}
	return -ENOENT;
}

/* A harmless program: this one itself on systems that have nothing else. */
static const char *const *trial(void)
{
	static const char *const programs[][3] = {
		{"/bin/true"}, {"/usr/bin/true"}, {"/proc/self/exe", "--version"}};
	size_t i;

	for (i = 0; i < sizeof(programs) / sizeof(*programs) - 1; i++) {
		if (!access(programs[i][0], X_OK))
			break;
	}
	return programs[i];
}

static void trial_exec(const char *library, int err_fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(err_fd, 2) < 0 ||
	    setenv("LD_PRELOAD", library, 1))
		_exit(126);
	execv(*trial(), (char *const *)trial());
	_exit(127);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* The child's status, and the first bytes that it printed; kills a child that hangs. */
static int trial_wait(pid_t child, int err_fd, char *text, size_t size, int *status)
{
	struct pollfd wait = {.fd = err_fd, .events = POLLIN};
	int64_t deadline = now_ms() + TRIAL_MS;
	size_t used = 0;
	ssize_t n;
	pid_t pid;

	text[0] = '\0';
	for (;;) {
		/* The order matters: output from before the end is in the pipe by then. */
		pid = waitpid(child, status, WNOHANG);
		n = 1;
		if (poll(&wait, 1, pid ? 0 : TRIAL_POLL_MS) > 0)
			n = read(err_fd, text + used, size - 1 - used);
		if (n <= 0 || used == size - 1)
			wait.fd = -1;
		else if (wait.revents)
			used += (size_t)n;
		text[used] = '\0';
		if (pid)
			return pid < 0 ? -errno : 0;
		if (now_ms() > deadline) {
			kill(child, SIGKILL);
			waitpid(child, status, 0);
			return -ETIMEDOUT;
		}
	}
}

static int trial_verdict(int err, int status, const char *text, char *why, size_t size)
{
	if (err == -ETIMEDOUT)
		snprintf(why, size, "a test run of %s did not end", *trial());
	else if (err)
		snprintf(why, size, "a test run of %s: %s", *trial(), log_error(err));
	else if (text[0])
		snprintf(why, size, "a test run of %s printed: %.*s", *trial(),
			 (int)strcspn(text, "\n"), text);
	else if (WIFSIGNALED(status))
		snprintf(why, size, "a test run of %s was killed by signal %d", *trial(),
			 WTERMSIG(status));
	else if (WEXITSTATUS(status))
		snprintf(why, size, "a test run of %s ended with status %d", *trial(),
			 WEXITSTATUS(status));
	else
		return 0;
	return -1;
}

int preload_try(const char *library, char *why, size_t size)
{
	struct sigaction usual = {.sa_handler = SIG_DFL}, before;
	int pipe_fd[2], err, status = 0;
	char text[256] = "";
	pid_t child;

	if (pipe2(pipe_fd, O_CLOEXEC))
		return trial_verdict(-errno, 0, text, why, size);
	/* An inherited "ignore" of SIGCHLD would prevent us from getting the status; the command
	 * keeps it. */
	sigaction(SIGCHLD, &usual, &before);
	child = fork();
	if (child == 0)
		trial_exec(library, pipe_fd[1]);
	err = child < 0 ? -errno : 0;
	close(pipe_fd[1]);
	if (!err)
		err = trial_wait(child, pipe_fd[0], text, sizeof(text), &status);
	close(pipe_fd[0]);
	sigaction(SIGCHLD, &before, NULL);
	return trial_verdict(err, status, text, why, size);
}

int preload_set(const char *library)
{
	const char *before = getenv("LD_PRELOAD");
	char *value = NULL;
	int err = 0;

	if (strpbrk(library, ": "))
		return -EINVAL;
	if (!before || !*before)
		return setenv("LD_PRELOAD", library, 1) ? -errno : 0;
	if (asprintf(&value, "%s:%s", library, before) < 0)
		return -ENOMEM;
	if (setenv("LD_PRELOAD", value, 1))
		err = -errno;
	free(value);
	return err;
}

/* Makes a link without spaces, in the state directory, to the library's folder (the agent is found
 * through it, too). It is not removed, because processes load the library through it as long as the
 * command runs. */
static int link_folder(const char *library, char *out, size_t size)
{
	char folder[PATH_MAX], state[PATH_MAX], name[32], link[PATH_MAX], target[PATH_MAX];
	const char *slash = strrchr(library, '/');
	uint32_t hash = 2166136261u;
	ssize_t n;
	int err;

	if (!slash || (size_t)(slash - library) >= sizeof(folder))
		return -ENAMETOOLONG;
	memcpy(folder, library, (size_t)(slash - library));
	folder[slash - library] = '\0';
	for (const char *p = folder; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 16777619u;
	snprintf(name, sizeof(name), "lib-%08x", hash);
	err = dirs_state(state, sizeof(state), NULL);
	if (!err)
		err = dirs_make_own(state);
	if (!err)
		err = dirs_join(link, sizeof(link), state, name);
	if (err)
		return err;
	n = readlink(link, target, sizeof(target) - 1);
	target[n < 0 ? 0 : n] = '\0';
	if (strcmp(target, folder)) {
		unlink(link);
		if (symlink(folder, link))
			return -errno;
	}
	return dirs_join(out, size, link, slash + 1);
}

int preload_path(const char *library, char *out, size_t size)
{
	int err = 0;

	if (strpbrk(library, ": "))
		err = link_folder(library, out, size);
	else if (snprintf(out, size, "%s", library) >= (int)size)
		err = -ENAMETOOLONG;
	return err ? err : strpbrk(out, ": ") ? -EINVAL : 0;
}

bool preload_prepare(const char *exe)
{
	char found[PATH_MAX], library[PATH_MAX], why[PATH_MAX + 128] = "out of memory";
	int err = preload_find(exe, found, sizeof(found));

	if (err)
		snprintf(why, sizeof(why),
			 "libcrema.so is neither next to '%s' nor in ../lib/crema", exe);
	else if ((err = preload_path(found, library, sizeof(library))) == -EINVAL)
		snprintf(why, sizeof(why),
			 "'%s' has a space or colon in its path, and so has the state directory: "
			 "set XDG_STATE_HOME to one that has none",
			 found);
	else if (err)
		snprintf(why, sizeof(why), "cannot make a path without spaces for '%s': %s", found,
			 log_error(err));
	else
		err = preload_try(library, why, sizeof(why));
	if (!err)
		err = preload_set(library);
	if (err)
		log_line("run: running unmeasured: %s", why);
	return !err;
}

int preload_exec(char **command)
{
	int err;

	execvp(command[0], command);
	err = errno;
	log_line("run: cannot execute '%s': %s", command[0], log_error(err));
	return err == ENOENT ? 127 : 126;
}
