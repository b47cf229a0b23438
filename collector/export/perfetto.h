/* SPDX-License-Identifier: BSD-3-Clause */
/* perfetto.h - what the files of the trace export share (perfetto.c, perfetto_counters.c). */
#ifndef CREMA_COLLECTOR_EXPORT_PERFETTO_H
#define CREMA_COLLECTOR_EXPORT_PERFETTO_H

#include "collector/report/report.h"

struct trace {
	const struct report *report;
	struct json *json;
	uint64_t origin_ns;	     /* UTC: 0 of the trace */
	uint64_t without_clock, ids; /* attempts that could not be placed; ids given */
};

/* Opens an event: its name, phase, process (from 1) and time. */
void trace_event(struct trace *t, const char *name, const char *phase, size_t pid, uint64_t utc_ns);
/* Counters of a worker: memory, tasks, bits per second by layer, seconds of tasks by class. */
void trace_counters(struct trace *t, const struct worker *w, size_t pid);

#endif
