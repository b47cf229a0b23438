/* SPDX-License-Identifier: BSD-3-Clause */
/* retain.c - schedules the check for runs to drop, and logs its results. */
#include "collector/retain/retain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/loop/job.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/units.h"

#define JOB_MS (30 * 60000)
#define LOOK_MS 60000 /* between checks if nothing happens */
#define NICE 10
#define WORK_TIMES 20 /* reading the journal without success may take this fraction of the time */

struct retain {
	struct loop *loop;
	struct journal *journal;
	struct retain_config config;
	struct loop_job *job;
	struct retain_result last;
	uint64_t tasks;	   /* number ended at the last check */
	uint64_t segments; /* at the last check */
	int64_t next_ms, began_ms;
	bool idle, failed;
	uint64_t current_ns; /* for the job */
};

int retain_parse(struct retain_config *config, const char *keep, const char *max_bytes)
{
	if (keep && (units_time(keep, &config->keep_ns) || !config->keep_ns)) {
		log_line("--keep: '%s' is not a time: give a number and s, m, h, d or w, as in 14d",
			 keep);
		return -EINVAL;
	}
	if (max_bytes && (units_bytes(max_bytes, &config->max_bytes) || !config->max_bytes)) {
		log_line("--max-bytes: '%s' is not a size: give a number and k, M, G or T, as in "
			 "20G",
			 max_bytes);
		return -EINVAL;
	}
	return 0;
}

uint64_t retain_segment_bytes(uint64_t max_bytes)
{
	uint64_t bytes = max_bytes / RETAIN_SEGMENTS;

	if (!max_bytes || bytes > JOURNAL_SEGMENT_BYTES)
		return JOURNAL_SEGMENT_BYTES;
	return bytes < RETAIN_SEGMENT_MIN ? RETAIN_SEGMENT_MIN : bytes;
}

/* Whether there can be anything to drop: checks the journal's size and its oldest segment. */
static bool is_worth_it(const struct retain *retain)
{
	uint64_t now = clock_real_ns();
	struct journal_stats stats;

	journal_get_stats(retain->journal, &stats);
	return (retain->config.max_bytes && stats.size_bytes > retain->config.max_bytes) ||
	       (retain->config.keep_ns && stats.oldest_ns && stats.oldest_ns < now &&
		now - stats.oldest_ns > retain->config.keep_ns);
}

static int make(void *arg, struct sink *out)
{
	const struct retain *retain = arg;
	struct retain_result result;
	int rc;

	if (nice(NICE) == -1)
		log_line("collect: dropping old runs at full priority");
	rc = retain_run(&retain->config, retain->current_ns, clock_real_ns(), &result);
	if (!rc)
		sink_put(out, (const char *)&result, sizeof(result));
	return rc;
}

static void say(struct retain *retain, const struct retain_result *r)
{
	char text[160];

	if (r->dropped || r->unlinked) {
		snprintf(text, sizeof(text),
			 "%" PRIu64 " runs dropped, their totals are kept; %" PRIu64
			 " segments with %" PRIu64 " bytes removed",
			 r->dropped, r->unlinked, r->unlinked_bytes);
		log_line("collect: %s", text);
		journal_note(retain->journal, "dropped", text);
	}
	if (*r->over && strcmp(r->over, retain->last.over) != 0)
		log_line("collect: %s", r->over);
	else if (!*r->over && *retain->last.over)
		log_line("collect: the journal is within its limit again");
}

static void on_job_done(void *arg, int result, struct buf *out)
{
	struct retain *retain = arg;
	struct retain_result r;
	int64_t now = loop_now_ms(retain->loop), took = now - retain->began_ms;

	retain->job = NULL;
	journal_look(retain->journal);
	retain->next_ms = now + (took * WORK_TIMES > LOOK_MS ? took * WORK_TIMES : LOOK_MS);
	if (result || out->len != sizeof(r)) {
		if (!retain->failed)
			log_line("collect: cannot drop old runs in '%s': %s; crema tries again",
				 retain->config.journal_dir, log_error(result ? result : -EIO));
		retain->failed = true;
		return;
	}
	retain->failed = false;
	memcpy(&r, out->data, sizeof(r));
	if (r.dropped) /* there may be more of them than it could read in time */
		retain->next_ms = now + LOOK_MS;
	r.over[sizeof(r.over) - 1] = '\0';
	say(retain, &r);
	retain->last = r;
}

void retain_tick(struct retain *retain, const struct live *live)
{
	struct loop_job_call call = {
		.fn = make, .arg = retain, .ms = JOB_MS, .done = on_job_done, .done_arg = retain};
	int64_t now = loop_now_ms(retain->loop);
	struct journal_stats stats;
	uint64_t tasks;
	bool idle = live_is_idle(live, &tasks);

	if (!retain->config.keep_ns && !retain->config.max_bytes)
		return;
	if (idle && tasks != retain->tasks) {
		retain->tasks = tasks;
		retain->next_ms = now;
	}
	journal_get_stats(retain->journal, &stats);
	if (stats.segments != retain->segments && now + LOOK_MS > retain->next_ms) {
		retain->segments = stats.segments;
		retain->next_ms = now;
	}
	if (retain->job || now < retain->next_ms)
		return;
	retain->next_ms = now + LOOK_MS;
	if (!is_worth_it(retain)) {
		retain->last.over[0] = '\0';
		return;
	}
	retain->current_ns = journal_segment_ns(retain->journal);
	retain->began_ms = now;
	retain->job = loop_job_start(retain->loop, &call);
}

const char *retain_text(const struct retain *retain)
{
	return retain->last.over;
}

void retain_get(const struct retain *retain, struct retain_result *last,
		struct retain_config *config)
{
	*last = retain->last;
	*config = retain->config;
}

struct retain *retain_new(struct loop *loop, struct journal *journal,
			  const struct retain_config *config)
{
	struct retain *retain = calloc(1, sizeof(*retain));

	if (!retain)
		return NULL;
	retain->loop = loop;
	retain->journal = journal;
	retain->config = *config;
	return retain;
}

void retain_free(struct retain *retain)
{
	if (!retain)
		return;
	if (retain->job)
		loop_job_cancel(retain->job);
	free(retain);
}
