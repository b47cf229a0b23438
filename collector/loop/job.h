/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job.h - runs a function in a child process and reads its output without blocking.
 *
 * The child has no descriptors of ours except its two pipes (output and result), default signals,
 * and the loop's memory as of the fork. Its output is either collected (`done`) or streamed:
 * `ready` reports that loop_job_read() has data. Streaming needs no memory but the pipe; the child
 * waits until it is read. A job is killed if it takes longer than `ms`, or, if streamed, if it
 * writes nothing for that long while loop_job_read() is waiting.
 *
 * Nothing here waits for a child: a timer reaps killed ones after they have ended.
 */
#ifndef CREMA_COLLECTOR_LOOP_JOB_H
#define CREMA_COLLECTOR_LOOP_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/emit/emit.h"
#include "collector/loop/loop.h"
#include "common/buf.h"

#define LOOP_JOB_OUTPUT_MAX (16u << 20) /* of a collected one */

struct loop_job;

struct loop_job_call {
	/* Runs in the child: 0, or -errno with one line in out->out, which replaces the output that
	 * was not flushed. */
	int (*fn)(void *arg, struct sink *out);
	void *arg; /* may be freed after loop_job_start(): the child has its copy */
	bool gzip; /* the child compresses the output, but never the line of a failure */
	int64_t ms;
	/* Set one of these. */
	void (*done)(void *arg, int result, struct buf *out);
	void (*ready)(void *arg);
	void *done_arg;
};

/*
 * NULL with errno set. done() is called exactly once per job, unless it is cancelled; the job is
 * freed afterwards. done() gets fn's result and its output, which it may take over (emptying the
 * buffer), or -ETIMEDOUT, -EFBIG, -EIO (the child died). After a failure the output is fn's line or
 * nothing. A streamed job lives until loop_job_cancel().
 */
struct loop_job *loop_job_start(struct loop *loop, const struct loop_job_call *call);
/*
 * Reads the next bytes of a streamed job. -EAGAIN: ready() will be called; 0: end of complete
 * output; -ETIMEDOUT, -EIO, or fn's failure: the output so far is incomplete.
 */
ssize_t loop_job_read(struct loop_job *job, void *to, size_t max);
/* Before anything was read: fn's failure, if it is known that only its line follows; or 0. */
int loop_job_failure(struct loop_job *job);
/* Kills it; no done(). */
void loop_job_cancel(struct loop_job *job);

#endif
