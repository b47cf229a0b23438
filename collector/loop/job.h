/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job.h - a function run in a child process, its output read without blocking.
 *
 * The child has none of our descriptors but its two pipes (output and result), default signals, and
 * the loop's memory as of the fork. Its output is either collected (`done`), or streamed: `ready`
 * says that loop_job_read() has something, and the pipe is all the memory that it takes; the child
 * waits while nobody reads. A job is killed when it takes longer than `ms`, or, streamed, when it
 * gives nothing for that long while loop_job_read() is waiting for it.
 *
 * Nothing here waits for a child: what was killed is reaped by a timer when it has ended.
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
	/* In the child: 0, or -errno with one line in out->out, which goes out in place of what was
	 * not flushed. */
	int (*fn)(void *arg, struct sink *out);
	void *arg; /* need not outlive loop_job_start(): the child has its copy */
	bool gzip; /* the child compresses; never the line of a failure */
	int64_t ms;
	/* One of both. */
	void (*done)(void *arg, int result, struct buf *out);
	void (*ready)(void *arg);
	void *done_arg;
};

/*
 * NULL with errno set. Exactly one done() per job, unless it was cancelled; the job is gone
 * afterwards. It gets fn's result and its output, which it may take over (emptying the buffer), or
 * -ETIMEDOUT, -EFBIG, -EIO (the child died); of a failure the output is fn's line or nothing. A
 * streamed job lives until loop_job_cancel().
 */
struct loop_job *loop_job_start(struct loop *loop, const struct loop_job_call *call);
/*
 * The next bytes of a streamed job; -EAGAIN: ready() will be called; 0: the end, and all of it was
 * there; -ETIMEDOUT, -EIO, or fn's failure: what came before is not the whole.
 */
ssize_t loop_job_read(struct loop_job *job, void *to, size_t max);
/* Before anything was read: fn's failure, if it is known that nothing but its line follows; or 0.
 */
int loop_job_failure(struct loop_job *job);
/* Kills it; no done(). */
void loop_job_cancel(struct loop_job *job);

#endif
