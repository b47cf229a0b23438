/* SPDX-License-Identifier: BSD-3-Clause */
/* http_job.c - a function in a child process and a pipe back. */
#include "collector/serve/http_job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"

#define READ_BYTES (64u << 10)

struct http_job {
	struct loop_watch *watch;
	struct loop_timer *timer;
	int fd;
	pid_t child;
	struct buf out; /* the result as an int32_t, then the output */
	void (*done)(void *arg, int result, struct buf *out);
	void *arg;
};

static void write_all(int fd, const void *p, size_t n)
{
	const char *at = p;
	ssize_t put;

	while (n) {
		put = write(fd, at, n);
		if (put < 0 && errno != EINTR)
			_exit(1);
		at += put < 0 ? 0 : put;
		n -= put < 0 ? 0 : (size_t)put;
	}
}

/* The agents must not find their sockets still open here after we have closed them there. */
static void close_others(int keep)
{
	long max = sysconf(_SC_OPEN_MAX);
	int fd;

	if (dup2(keep, 3) < 0)
		_exit(1);
	if (close_range(4, ~0u, 0)) {
		for (fd = 4; fd < (max > 0 ? max : 65536); fd++)
			close(fd);
	}
}

/* It reads a whole journal: if the memory does not suffice, it goes, not the collector. */
static void go_first_when_memory_is_out(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "1000", 4) != 4)
		log_line("collect: a child cannot be made the first to go when memory is out");
	close(fd);
}

static void child_main(const struct http_job_call *call, int fd)
{
	struct buf out = BUF_INIT;
	int32_t result;
	sigset_t none;
	int signo;

	for (signo = 1; signo < NSIG; signo++)
		signal(signo, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	close_others(fd);
	go_first_when_memory_is_out();
	result = call->fn(call->arg, call->kind, call->run, &out);
	if (!result)
		result = out.error;
	write_all(3, &result, sizeof(result));
	write_all(3, out.data, out.len);
	_exit(0);
}

static void job_free(struct http_job *job)
{
	loop_watch_free(job->watch);
	loop_timer_free(job->timer);
	close(job->fd);
	if (job->child > 0) {
		kill(job->child, SIGKILL);
		waitpid(job->child, NULL, 0);
	}
	buf_release(&job->out);
	free(job);
}

void http_job_cancel(struct http_job *job)
{
	job_free(job);
}

static void finish(struct http_job *job, int result)
{
	struct buf out = job->out;
	int status = 0;

	memset(&job->out, 0, sizeof(job->out));
	if (!result) {
		/* Its pipe is closed: it has ended, or will at once. */
		if (waitpid(job->child, &status, 0) != job->child || status)
			result = -EIO;
		job->child = 0;
	}
	if (!result && out.len < sizeof(int32_t))
		result = -EIO;
	if (!result) {
		int32_t told;

		memcpy(&told, out.data, sizeof(told));
		result = told;
		buf_consume(&out, sizeof(told));
	}
	job->done(job->arg, result, &out);
	buf_release(&out);
	job_free(job);
}

static void on_readable(void *arg)
{
	struct http_job *job = arg;
	ssize_t n;

	if (buf_reserve(&job->out, READ_BYTES)) {
		finish(job, -ENOMEM);
		return;
	}
	n = read(job->fd, job->out.data + job->out.len, READ_BYTES);
	if (n > 0) {
		job->out.len += (size_t)n;
		if (job->out.len > HTTP_JOB_OUTPUT_MAX)
			finish(job, -EFBIG);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		finish(job, n ? -EIO : 0);
	}
}

static void on_timeout(void *arg)
{
	finish(arg, -ETIMEDOUT);
}

struct http_job *http_job_start(struct loop *loop, const struct http_job_call *call, int64_t ms,
				void (*done)(void *arg, int result, struct buf *out), void *arg)
{
	struct http_job *job = calloc(1, sizeof(*job));
	int fd[2] = {-1, -1};

	if (!job)
		return NULL;
	if (pipe2(fd, O_CLOEXEC)) {
		free(job);
		return NULL;
	}
	job->fd = fd[0];
	job->done = done;
	job->arg = arg;
	fcntl(fd[0], F_SETFL, O_NONBLOCK);
	job->watch = loop_watch_new(loop, fd[0], on_readable, job);
	job->timer = loop_timer_new(loop, on_timeout, job);
	if (job->watch && job->timer)
		job->child = fork();
	if (job->child == 0 && job->watch && job->timer)
		child_main(call, fd[1]);
	close(fd[1]);
	if (job->child <= 0) {
		job_free(job);
		errno = EAGAIN;
		return NULL;
	}
	loop_timer_set(job->timer, ms);
	return job;
}
