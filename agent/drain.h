/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drain.h - from task slots to records: start at once, progress, end, amendments. Then it frees the
 * slot.
 *
 * A slot is freed when it is DONE, nothing refers to it, its last version was sent, and that record
 * is safe. Until the collector has sent its verdicts on file systems, up to DRAIN_HELD slots of
 * tasks that read files are kept, so that these are sent again. The agent's own table is touched
 * only where slots are used. One thread.
 */
#ifndef CREMA_AGENT_DRAIN_H
#define CREMA_AGENT_DRAIN_H

#include "agent/compose.h"
#include "agent/outbox.h"

#define DRAIN_PROGRESS_NS 500000000u
#define DRAIN_PROGRESS_PER_POLL 256
#define DRAIN_HELD 512u

enum drain_stage { DRAIN_NEW, DRAIN_STARTED, DRAIN_ENDED };

struct drain_slot {
	uint64_t attempt;
	uint64_t rev;
	uint64_t ticket; /* of the record that carried its last version */
	uint64_t sum;	 /* compose_sum() of what was sent */
	uint64_t progress_ns;
	uint64_t rss_peak;
	struct compose_live live;
	uint32_t version;
	uint8_t stage;
	bool had_refs; /* at the last send, work for it was under way */
};

struct drain {
	const struct view *view;
	struct outbox *out;
	const struct fskinds *kinds;
	int pid;
	uint64_t rss;		       /* of the worker, at the latest poll; 0 = unknown */
	uint64_t last_boot, last_mono; /* when it was last seen alive */
	uint32_t running, used;	       /* slots, at the latest poll */
	bool hold;		       /* the collector's verdicts are still to come */
	uint32_t again; /* file systems that were decided again: their ended tasks are sent again */
	struct buf text;	 /* scratch */
	struct drain_slot *slot; /* CREMA_SHM_TASKS of them */
	struct drain_unknown {
		uint32_t time;	/* bit CREMA_T_x: not measured in any task so far */
		uint64_t count; /* bit CREMA_C_x */
	} unknown;
};

/* Of what is unknown of all tasks, that which is unknown of the process, too: sockets are counted
 * in every thread, so only the tasks' shares of their bytes are unknown. */
static inline uint64_t drain_unknown_total(uint64_t count)
{
	return count & ~CREMA_NETWORK_COUNTS;
}

/* 0 or -ENOMEM. */
int drain_init(struct drain *d, const struct view *v, struct outbox *out,
	       const struct fskinds *kinds, int pid);
void drain_release(struct drain *d);
/* Checks all slots once. rss: the worker's resident set now, 0 = unknown. */
void drain_poll(struct drain *d, uint64_t rss, uint64_t mono_ns, uint64_t boot_ns);
/* Frees what can be freed; also called between polls, after an acknowledgement. */
void drain_free(struct drain *d);
/* The worker has ended: closes what was running as killed. Returns how many there were. */
unsigned int drain_end(struct drain *d);

#endif
