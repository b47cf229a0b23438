/* SPDX-License-Identifier: BSD-3-Clause */
/* live_run.c - makes a report in a child process, and keeps it for /metrics. */
#include "collector/web/live_run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collector/loop/job.h"
#include "collector/print/render.h"
#include "collector/report/report.h"
#include "common/clock.h"

#define JOB_MS 60000

struct live_run {
	struct loop *loop;
	const char *dir;
	const char *const *more;
	struct loop_job *job;
	uint64_t tasks; /* number ended when the last job was started */
	struct buf text;
};

static void put_time(struct sink *s, const char *name, const char *help, double time)
{
	sink_printf(s, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
	if (!isnan(time))
		sink_sample(s, name, time);
}

static int use(const struct report *report, void *arg, struct buf *why)
{
	struct sink *s = arg;
	int i;

	(void)why;
	put_time(s, "crema_run_start_timestamp_seconds", "UTC of the last finished run's start",
		 report->run->start);
	put_time(s, "crema_run_stop_timestamp_seconds", "UTC of its end", report->run->stop);
	sink_puts(s, "# HELP crema_run_state 1 for the state of the last finished run\n"
		     "# TYPE crema_run_state gauge\n");
	for (i = 0; i < RUN_STATES; i++)
		sink_printf(s, "crema_run_state{state=\"%s\"} %d\n",
			    run_state_name((enum run_state_id)i),
			    report->facts->state.id == (enum run_state_id)i);
	metrics_prometheus(report->facts, s);
	return s->error;
}

/* In the child. */
static int make(void *arg, struct sink *out)
{
	const struct live_run *run = arg;
	struct buf why = BUF_INIT;
	struct report_request request = {
		.dir = run->dir,
		.more = run->more,
		.pass_over = true,
		.now_ns = clock_real_ns(),
		.use = use,
		.use_arg = out,
	};
	int err = report_render(&request, &why);

	buf_release(&why);
	return err;
}

/* After a failure there are no numbers, rather than those of the previous run. */
static void on_job_done(void *arg, int result, struct buf *out)
{
	struct live_run *run = arg;

	run->job = NULL;
	buf_release(&run->text);
	if (result)
		return;
	run->text = *out;
	memset(out, 0, sizeof(*out));
}

void live_run_tick(struct live_run *run, const struct live *live)
{
	struct loop_job_call call = {
		.fn = make, .arg = run, .ms = JOB_MS, .done = on_job_done, .done_arg = run};
	uint64_t tasks;

	if (run->job || !live_is_idle(live, &tasks) || tasks == run->tasks)
		return;
	run->tasks = tasks;
	run->job = loop_job_start(run->loop, &call);
}

const struct buf *live_run_text(const struct live_run *run)
{
	return &run->text;
}

struct live_run *live_run_new(struct loop *loop, const char *dir, const char *const *more)
{
	struct live_run *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	run->loop = loop;
	run->dir = dir;
	run->more = more;
	return run;
}

void live_run_free(struct live_run *run)
{
	if (!run)
		return;
	if (run->job)
		loop_job_cancel(run->job);
	buf_release(&run->text);
	free(run);
}
