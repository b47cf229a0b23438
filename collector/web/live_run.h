/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live_run.h - the metrics of the last finished run, as gauges for Prometheus.
 *
 * A child process makes the report once the cluster has been idle for 10 s and tasks have ended
 * since the last report. The metrics are kept until the next ones are ready, and are empty before
 * the first run.
 */
#ifndef CREMA_COLLECTOR_WEB_LIVE_RUN_H
#define CREMA_COLLECTOR_WEB_LIVE_RUN_H

#include "collector/live/live.h"
#include "collector/loop/loop.h"

struct live_run;

/* dir: the collector's directory; more: NULL, or further ones that are read with it as one, NULL at
 * the end. Both must outlive it. NULL: out of memory. */
struct live_run *live_run_new(struct loop *loop, const char *dir, const char *const *more);
void live_run_free(struct live_run *run);
/* Once a second. */
void live_run_tick(struct live_run *run, const struct live *live);
const struct buf *live_run_text(const struct live_run *run);

#endif
