/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lost.h - which records of a worker are lost, for reports, live.json and /metrics.
 *
 * Records that an agent refused leave a gap in its stream, too. Until the gap is visible, or until
 * the totals that count them arrive, only one of both numbers is known: workers are settled one by
 * one, so that what one refused hides nothing that another one lost.
 */
#ifndef CREMA_COLLECTOR_MODEL_LOST_H
#define CREMA_COLLECTOR_MODEL_LOST_H

#include <stdint.h>

/* Of one worker: the numbers missing from its streams, and how many records it refused. */
static inline uint64_t lost_records(uint64_t missing, uint64_t refused)
{
	return missing > refused ? missing - refused : 0;
}

#endif
