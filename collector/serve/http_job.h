/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http_job.h - a function run in a child process, its output collected without blocking.
 *
 * The child has none of our descriptors but its pipe, default signals, and the loop's memory as of
 * the fork. One that takes longer than `ms` is killed. Exactly one done() per started job, unless
 * it was cancelled.
 */
#ifndef COLLECTOR_HTTP_JOB_H
#define COLLECTOR_HTTP_JOB_H

#include <stdbool.h>

#include "collector/serve/loop.h"
#include "common/buf.h"

#define HTTP_JOB_OUTPUT_MAX (256u << 20)

enum http_kind { HTTP_TEXT, HTTP_JSON, HTTP_PAGE, HTTP_KINDS }; /* of reports */

struct http_job;

struct http_job_call {
	int (*fn)(void *arg, enum http_kind kind, const char *run, struct buf *out);
	void *arg;
	enum http_kind kind;
	const char *run;
};

/*
 * done() gets fn's result and its output, which it may take over (emptying the buffer), or
 * -ETIMEDOUT, -EFBIG, -EIO (the child died). The job is gone afterwards. NULL with errno set.
 */
struct http_job *http_job_start(struct loop *loop, const struct http_job_call *call, int64_t ms,
				void (*done)(void *arg, int result, struct buf *out), void *arg);
/* Kills it; no done(). */
void http_job_cancel(struct http_job *job);

#endif
