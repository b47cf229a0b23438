/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live_values.h - the numbers of a TOTALS message in one row, and their rates.
 *
 * Order: own times, pool times, counts of tasks, counts outside of tasks, amounts, plain counts.
 */
#ifndef CREMA_COLLECTOR_LIVE_LIVE_VALUES_H
#define CREMA_COLLECTOR_LIVE_LIVE_VALUES_H

#include "ids.h"

enum live_value {
	LIVE_OWN = 0,
	LIVE_POOL = LIVE_OWN + CREMA_TIMES,
	LIVE_TASK = LIVE_POOL + CREMA_TIMES,
	LIVE_REST = LIVE_TASK + CREMA_COUNTS,
	LIVE_AMOUNT = LIVE_REST + CREMA_COUNTS,
	LIVE_AMOUNT_END_ = LIVE_AMOUNT - 1,
#define TOTALS_AMOUNT(part, name, help) LIVE_##part##_##name,
#include "rows.def"
	LIVE_PLAIN,
	LIVE_PLAIN_END_ = LIVE_PLAIN - 1,
#define TOTALS_NUMBER(name, ...) LIVE_##name,
#include "rows.def"
	LIVE_VALUES
};

/* Per second: bytes by layer, seconds by class, CPU seconds, tasks, events. */
enum live_rate {
	LIVE_RATE_LAYER = 0,
	LIVE_RATE_CLASS = CREMA_LAYERS,
	LIVE_RATE_CPU = LIVE_RATE_CLASS + CREMA_TIMES,
	LIVE_RATE_TASKS,
	LIVE_RATE_EVENTS,
	LIVE_RATES
};

#endif
