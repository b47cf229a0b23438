/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.h - the parts of a worker's resident set at its maximum, from SAMPLE messages.
 *
 * They come from the run's sample with the most resident memory among those with heap readings
 * (agent/heap.h). in use + held + file + shared = resident, all from one read of /proc/PID/status;
 * held is read a moment later.
 */
#ifndef CREMA_COLLECTOR_REPORT_MEMORY_H
#define CREMA_COLLECTOR_REPORT_MEMORY_H

#include "collector/emit/emit_json.h"
#include "collector/metrics/metrics.h"

#define MEMORY_READINGS 3u /* minimum number to determine `kept` */

struct worker_memory {
	const struct worker *worker;
	double time; /* UTC; NAN: no sample has all parts, so all of them are unknown */
	size_t readings, samples; /* of the run; readings: those with all parts */
	struct value resident;
	struct value
		in_use; /* by Python, arrays, stacks: anonymous, and not free in malloc's heaps */
	struct value held;	 /* free blocks of malloc */
	struct value returnable; /* the part of held that malloc_trim(0) returns */
	struct value file, shared;
	/* The lowest returnable value in the second half of the readings: it stays. */
	struct value kept;
};

struct worker_memory worker_memory(const struct run *run, const struct worker *w);
void worker_memory_json(const struct run *run, struct json *j);

#endif
