/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * time_bar.h - the budget of the threads' time (metrics/budget.h) as one bar and its legend.
 *
 * If the threads or the wall time are unknown, it shows the time of all tasks.
 */
#ifndef CREMA_COLLECTOR_PRINT_TIME_BAR_H
#define CREMA_COLLECTOR_PRINT_TIME_BAR_H

#include "collector/metrics/metrics.h"

void time_bar_print(const struct facts *f, struct sink *s, bool colour);

#endif
