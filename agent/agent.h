/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent.h - the agent of one worker process: attaches, drains, samples, sends, and outlives it.
 *
 * One thread, one poll loop; see docs/architecture.md. Nothing is printed: descriptors 0-2 are
 * /dev/null. Messages for people go to <spool>/agent.log, each line once.
 */
#ifndef CREMA_AGENT_AGENT_H
#define CREMA_AGENT_AGENT_H

#include "agent/descriptors.h"
#include "agent/doing.h"
#include "agent/drain.h"
#include "agent/ending.h"
#include "agent/hello.h"
#include "agent/outbox.h"
#include "agent/pylines.h"
#include "agent/redact.h"
#include "agent/rows.h"
#include "agent/sampler.h"
#include "agent/stacks.h"
#include "agent/takeover.h"
#include "agent/uplink.h"

#define AGENT_POLL_NS 250000000u
#define AGENT_HURRY_NS 20000000u /* while many slots are in use */
#define AGENT_HURRY_SLOTS 1024u
#define AGENT_SECOND_NS 1000000000u
#define AGENT_FRESH_NS 3000000000u   /* a heartbeat younger than this is alive */
#define AGENT_AWAY_NS 1000000000u    /* collector away for longer: spool */
#define AGENT_SLOW_NS 3000000000u    /* oldest unacknowledged frame: spool */
#define AGENT_LINGER_NS 30000000000u /* after the worker's end */
#define AGENT_STOP_NS 10000000000u   /* after SIGTERM: for the worker's end, then its records */
#define AGENT_FACTS_NS 2000000000u   /* the first hello waits for the probe's facts this long */

struct agent_options {
	const char *shm, *collector, *spool;
	int pid;
	uint64_t start_ticks;
};

struct agent {
	struct agent_options options;
	struct view view;
	struct redact redact;
	int pidfd;				/* -1: /proc is polled */
	bool ended;				/* the worker has */
	bool adopted;				/* another agent took our place */
	bool has_link;				/* TCP; else dir: or spool only */
	bool was_ready;				/* a collector answered once */
	bool has_verdicts;			/* the collector's, or it has none */
	uint64_t began_ns, second_ns, ready_ns; /* CLOCK_MONOTONIC */
	uint64_t finished_ns;			/* its goodbye was sent; 0: not yet */
	uint64_t leave_ns;			/* leave then at the latest; 0: stay */
	uint64_t sweep_ns;
	char spool[PATH_MAX];
	struct fskinds kinds;
	struct outbox outbox;
	struct drain drain;
	struct rows rows;
	struct stacks stacks;
	struct descriptors descriptors;
	struct doing doing;
	struct pylines lines;
	struct sampler sampler;
	struct ending ending;
	struct uplink_source source;
	struct uplink_security security;
	struct uplink uplink;
	struct takeover takeover;
	bool has_takeover;
	struct buf stack; /* facts JSON */
	struct buf hello; /* scratch */
	bool hello_sent;
	uint64_t told_dropped;	 /* dropped records when all rows were last sent again */
	uint64_t hello_facts_ns; /* when the facts of the last hello were made; 0: none */
	char logged[256];	 /* the last trouble written to the log */
};

/* Whole program: parses argv, runs, returns the exit status. */
int agent_main(int argc, char **argv);
/* Parses argv: 0 or -EINVAL. */
int agent_parse(struct agent_options *o, int argc, char **argv);
/* Attaches and prepares everything; 0, -EALREADY (another agent is at work) or -errno. */
int agent_init(struct agent *a, const struct agent_options *o);
/* One round of work, without waiting. Returns false when it is time to leave. */
bool agent_turn(struct agent *a, uint64_t mono_ns, uint64_t boot_ns);
void agent_release(struct agent *a);
/*
 * Set by SIGTERM. Batch systems send it to all processes of a job, so the worker's end is near: the
 * agent waits for it, and then for its last records, AGENT_STOP_NS each.
 */
extern volatile int agent_stopping;

#endif
