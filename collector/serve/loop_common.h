/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop_common.h - what every implementation of loop.h shares: timers, signals, running, stopping.
 *
 * An implementation's struct loop begins with a struct loop_common, and its loop_turn() calls
 * _wait_ms() for the time to wait, _tick() after waiting and _run_timers() after the callbacks.
 */
#ifndef COLLECTOR_LOOP_COMMON_H
#define COLLECTOR_LOOP_COMMON_H

#include "collector/serve/loop.h"

struct loop_signals;

struct loop_common {
	int64_t now_ms;
	bool stop;
	struct loop_timer *timers;
	struct loop_signals *signals;
};

void loop_common_init(struct loop_common *common);
void loop_common_release(struct loop_common *common);
int loop_common_wait_ms(const struct loop_common *common, int timeout_ms);
void loop_common_tick(struct loop_common *common);
void loop_common_run_timers(struct loop_common *common);

#endif
