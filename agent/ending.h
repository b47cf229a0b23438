/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ending.h - how the worker ended, and the evidence for the cause: the GOODBYE message.
 *
 * Evidence is what was seen; a cause is only named if the evidence is strong.
 */
#ifndef CREMA_AGENT_ENDING_H
#define CREMA_AGENT_ENDING_H

#include <limits.h>

#include "agent/outbox.h"
#include "common/view.h"

struct ending {
	int pid, nanny;		 /* nanny: the worker's parent when we attached, 0 = unknown */
	uint64_t nanny_ticks;	 /* when that process started, 0 = unknown */
	char oom_file[PATH_MAX]; /* of the worker's cgroup, which need not be ours; "" = none */
	uint64_t oom_kills;	 /* its count when we attached */
	uint64_t limit_bytes;	 /* Dask's memory limit, 0 = unknown */
};

/* Records what can only be seen while the worker lives. */
void ending_init(struct ending *e, int pid);
/* While the worker lives: finds its present cgroup, as batch systems move processes. */
void ending_look(struct ending *e);
/* Takes the memory limit from the probe's JSON facts. */
void ending_facts(struct ending *e, const struct buf *stack);
/* rss: the last resident set that was seen, 0 = unknown. */
void ending_goodbye(const struct ending *e, const struct view *v, struct outbox *out, uint64_t rss,
		    unsigned int in_flight, uint64_t boot_ns);

#endif
