/* SPDX-License-Identifier: BSD-3-Clause */
/* pager.c - see pager.h. */
#include "collector/cmd/pager.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

bool pager_wanted(void)
{
	const char *named = getenv("PAGER"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0 &&
	       !(named && (!*named || !strcmp(named, "cat")));
}

static int write_all(int fd, const struct buf *text)
{
	size_t done = 0;
	ssize_t n;

	while (done < text->len) {
		n = write(fd, text->data + done, text->len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EPIPE ? 0 : -errno;
		done += (size_t)n;
	}
	return 0;
}

/* Without a pager the child copies its input to the output. */
static void child_exec(int in)
{
	const char *named = getenv("PAGER");
	char bytes[1 << 14];
	ssize_t n;

	if (dup2(in, STDIN_FILENO) < 0)
		_exit(126);
	setenv("LESS", "FRX", 0); /* exit at the end of a short text, colours, no clearing */
	if (named)
		execl("/bin/sh", "sh", "-c", named, (char *)NULL);
	else
		execlp("less", "less", (char *)NULL);
	while ((n = read(STDIN_FILENO, bytes, sizeof(bytes))) > 0) {
		const struct buf part = {.data = (void *)bytes, .len = (size_t)n};

		if (write_all(STDOUT_FILENO, &part))
			break;
	}
	_exit(0);
}

int pager_write(const struct buf *text)
{
	int ends[2], status, rc;
	pid_t child = -1;

	if (!pager_wanted() || pipe(ends))
		return write_all(STDOUT_FILENO, text);
	child = fork();
	if (!child) {
		close(ends[1]);
		child_exec(ends[0]);
	}
	close(ends[0]);
	if (child < 0) {
		close(ends[1]);
		return write_all(STDOUT_FILENO, text);
	}
	/* Keys are for the pager; if it quits early, the pipe is closed. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	rc = write_all(ends[1], text);
	close(ends[1]);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return rc;
}
