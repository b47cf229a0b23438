/* SPDX-License-Identifier: BSD-3-Clause */
/* job.c - runs a function in a child process, with two pipes back: its output, and how it ended. */
#include "collector/loop/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/emit/gzip.h"
#include "common/log.h"

#define READ_BYTES (64u << 10)
#define REAP_MS 100
#define OUT_FD 3 /* of the child */
#define RESULT_FD 4

/* The child writes it when fn has ended: before the line of a failure, else after the output. */
struct verdict {
	int32_t result;
	int32_t begun; /* some output had been sent before */
};

struct loop_job {
	struct loop_watch *watch;
	struct loop_timer *timer;
	struct loop *loop;
	int fd, result_fd;
	int64_t ms;
	pid_t child;
	bool timed_out, ended; /* ended: there is a verdict */
	struct verdict verdict;
	struct buf out; /* collected output */
	void (*done)(void *arg, int result, struct buf *out);
	void (*ready)(void *arg);
	void *arg;
};

/* The child's side */

struct writer {
	z_stream z;
	bool gzip, begun;
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

static void write_deflated(struct writer *w, const struct buf *out, int how)
{
	unsigned char piece[READ_BYTES];

	w->z.next_in = out->data;
	w->z.avail_in = (uInt)out->len;
	do {
		w->z.next_out = piece;
		w->z.avail_out = sizeof(piece);
		deflate(&w->z, how);
		write_all(OUT_FD, piece, sizeof(piece) - w->z.avail_out);
	} while (!w->z.avail_out);
}

/* The flush of fn's sink: sends a piece, so the total size does not matter. */
static int flush(struct buf *out, void *arg)
{
	struct writer *w = arg;

	w->begun = true;
	if (w->gzip)
		write_deflated(w, out, Z_NO_FLUSH);
	else
		write_all(OUT_FD, out->data, out->len);
	buf_clear(out);
	return 0;
}

/* Otherwise sockets that we close would stay open here, and the agents would not notice. */
static void close_others(int out_fd, int result_fd)
{
	long max = sysconf(_SC_OPEN_MAX);
	int fd, out = fcntl(out_fd, F_DUPFD, RESULT_FD + 1);
	int result = fcntl(result_fd, F_DUPFD, RESULT_FD + 1);

	if (dup2(out, OUT_FD) < 0 || dup2(result, RESULT_FD) < 0)
		_exit(1);
	if (close_range(RESULT_FD + 1, ~0u, 0)) {
		for (fd = RESULT_FD + 1; fd < (max > 0 ? max : 65536); fd++)
			close(fd);
	}
}

/* The child reads a whole journal: if memory runs out, the kernel should kill it, not the
 * collector. */
static void go_first_when_memory_is_out(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "1000", 4) != 4)
		log_line("collect: cannot make a child process the first to be killed when memory "
			 "runs out");
	close(fd);
}

static void run_call(const struct loop_job_call *call)
{
	struct writer w = {.gzip = call->gzip};
	struct buf out = BUF_INIT;
	struct sink sink = {.out = &out, .flush = flush, .arg = &w};
	struct verdict verdict = {0};

	if (w.gzip && gzip_begin(&w.z))
		_exit(1);
	verdict.result = call->fn(call->arg, &sink);
	if (!verdict.result)
		verdict.result = sink.error ? sink.error : out.error;
	verdict.begun = w.begun;
	if (verdict.result) {
		write_all(RESULT_FD, &verdict, sizeof(verdict));
		if (!w.begun)
			write_all(OUT_FD, out.data, out.len);
		return;
	}
	if (w.gzip)
		write_deflated(&w, &out, Z_FINISH);
	else
		write_all(OUT_FD, out.data, out.len);
	write_all(RESULT_FD, &verdict, sizeof(verdict));
}

static void child_main(const struct loop_job_call *call, int out_fd, int result_fd)
{
	sigset_t none;
	int signo;

	for (signo = 1; signo < NSIG; signo++)
		signal(signo, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	close_others(out_fd, result_fd);
	go_first_when_memory_is_out();
	run_call(call);
	_exit(0);
}

/* Children that were killed, or are about to exit. */

struct child {
	struct loop_timer *timer;
	pid_t pid;
	struct child *next;
};

static struct child *ending; /* per process, not per loop */

static bool reaped(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) != 0;
}

static void on_reap(void *arg)
{
	struct child *child = arg, **at;

	if (!reaped(child->pid)) {
		loop_timer_set(child->timer, REAP_MS);
		return;
	}
	for (at = &ending; *at != child; at = &(*at)->next)
		;
	*at = child->next;
	loop_timer_free(child->timer);
	free(child);
}

/* Does not wait: a child on a hung file system only ends when that responds. */
static void end_child(struct loop *loop, pid_t pid)
{
	struct child *child;

	kill(pid, SIGKILL);
	if (reaped(pid))
		return;
	child = calloc(1, sizeof(*child));
	if (!child)
		return;
	child->timer = loop_timer_new(loop, on_reap, child);
	if (!child->timer) {
		free(child);
		return;
	}
	child->pid = pid;
	child->next = ending;
	ending = child;
	loop_timer_set(child->timer, REAP_MS);
}

/* The parent's side */

static void job_free(struct loop_job *job)
{
	loop_watch_free(job->watch);
	if (job->child > 0)
		end_child(job->loop, job->child);
	loop_timer_free(job->timer);
	if (job->fd >= 0)
		close(job->fd);
	if (job->result_fd >= 0)
		close(job->result_fd);
	buf_release(&job->out);
	free(job);
}

void loop_job_cancel(struct loop_job *job)
{
	job_free(job);
}

/* False: there is no verdict yet, or, at the end of the output, the child died. */
static bool has_ended(struct loop_job *job)
{
	if (!job->ended)
		job->ended = read(job->result_fd, &job->verdict, sizeof(job->verdict)) ==
			     (ssize_t)sizeof(job->verdict);
	return job->ended;
}

static void finish(struct loop_job *job, int result)
{
	bool says_why = has_ended(job) && job->verdict.result && !job->verdict.begun;

	if (!result)
		result = job->ended ? job->verdict.result : -EIO;
	/* Partial output is not a response, and may be compressed. */
	if (result && !says_why)
		buf_clear(&job->out);
	job->done(job->arg, result, &job->out);
	job_free(job);
}

static void collect(struct loop_job *job)
{
	ssize_t n;

	if (buf_reserve(&job->out, READ_BYTES)) {
		finish(job, -ENOMEM);
		return;
	}
	n = read(job->fd, job->out.data + job->out.len, READ_BYTES);
	if (n > 0) {
		job->out.len += (size_t)n;
		if (job->out.len > LOOP_JOB_OUTPUT_MAX)
			finish(job, -EFBIG);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		finish(job, n ? -EIO : 0);
	}
}

static void on_readable(void *arg)
{
	struct loop_job *job = arg;

	if (job->done) {
		collect(job);
		return;
	}
	loop_watch_pause(job->watch, true);
	loop_timer_set(job->timer, -1); /* from now on the reader is the slow side */
	job->ready(job->arg);
}

static void on_timeout(void *arg)
{
	struct loop_job *job = arg;

	if (job->done) {
		finish(job, -ETIMEDOUT);
		return;
	}
	job->timed_out = true;
	loop_watch_pause(job->watch, true);
	job->ready(job->arg);
}

int loop_job_failure(struct loop_job *job)
{
	if (job->timed_out)
		return -ETIMEDOUT;
	if (!has_ended(job) || !job->verdict.result)
		return 0;
	/* part of the output is in the pipe, and is not an error message */
	return job->verdict.begun ? -EIO : job->verdict.result;
}

ssize_t loop_job_read(struct loop_job *job, void *to, size_t max)
{
	ssize_t n;

	if (job->timed_out)
		return -ETIMEDOUT;
	n = read(job->fd, to, max);
	if (n > 0)
		return n;
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		loop_watch_pause(job->watch, false);
		loop_timer_set(job->timer, job->ms);
		return -EAGAIN;
	}
	return n == 0 && has_ended(job) ? job->verdict.result : -EIO;
}

struct loop_job *loop_job_start(struct loop *loop, const struct loop_job_call *call)
{
	struct loop_job *job = calloc(1, sizeof(*job));
	int out[2] = {-1, -1}, result[2] = {-1, -1};

	if (!job)
		return NULL;
	job->loop = loop;
	job->ms = call->ms;
	job->done = call->done;
	job->ready = call->ready;
	job->arg = call->done_arg;
	job->child = -1;
	job->timer = loop_timer_new(loop, on_timeout, job);
	if (job->timer && !pipe2(out, O_CLOEXEC) && !pipe2(result, O_CLOEXEC)) {
		fcntl(out[0], F_SETFL, O_NONBLOCK);
		fcntl(result[0], F_SETFL, O_NONBLOCK);
		job->watch = loop_watch_new(loop, out[0], on_readable, job);
	}
	if (job->watch)
		job->child = fork();
	if (job->child == 0)
		child_main(call, out[1], result[1]);
	close(out[1]);
	close(result[1]);
	job->fd = out[0];
	job->result_fd = result[0];
	if (job->child < 0) {
		job_free(job);
		errno = EAGAIN;
		return NULL;
	}
	loop_timer_set(job->timer, call->ms);
	return job;
}
