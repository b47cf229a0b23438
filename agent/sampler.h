/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sampler.h - what the worker's process and the host do, once a second: SAMPLE and HOST messages.
 *
 * No smaps: reading it stalls the worker (heap.h describes what is read instead). Of a user's
 * agents on a host, one per collector sends HOST: the one that holds a name in the abstract socket
 * space; the others try again from time to time. One thread.
 */
#ifndef CREMA_AGENT_SAMPLER_H
#define CREMA_AGENT_SAMPLER_H

#include "agent/heap.h"
#include "agent/outbox.h"
#include "common/rows.h"
#include "common/view.h"

/* The value read for a SAMPLE_NUMBER or a HOST_NUMBER of contract/rows.def. */
struct reading {
	enum { READING_UNKNOWN, READING_UINT, READING_REAL } type;
	union {
		uint64_t uint;
		double real;
	};
};

static inline struct reading reading_uint(bool known, uint64_t v)
{
	return (struct reading){known ? READING_UINT : READING_UNKNOWN, {.uint = v}};
}

static inline struct reading reading_real(bool known, double v)
{
	return (struct reading){known ? READING_REAL : READING_UNKNOWN, {.real = v}};
}

struct sampler {
	const struct view *view;
	struct outbox *out;
	int pid;
	uint64_t cpu_ns, mono_ns;	/* of the previous sample; 0: none */
	uint64_t host_busy, host_total; /* ticks of the previous host sample */
	int lock_fd;			/* -1: another agent sends HOST */
	uint64_t lock_tried_ns;
	uint64_t collector;    /* a hash of its address */
	uint64_t rss, rss_max; /* latest, and highest seen */
	struct heap_watch heap;
};

/* collector: where samples go, as in the agent's options; NULL: only to the spool. */
void sampler_init(struct sampler *s, const struct view *v, struct outbox *out, int pid,
		  const char *collector);
void sampler_release(struct sampler *s);
/* Resident set now, 0 = unknown. Cheap: for every poll. */
uint64_t sampler_rss(struct sampler *s);
/* count_unknown: bits of counts that no task could measure. */
void sampler_worker(struct sampler *s, uint32_t running, uint64_t count_unknown, uint64_t mono_ns,
		    uint64_t boot_ns);
/* One line of /proc's text, NULL: it could not be read; sampler_pack() writes what was read. */
struct reading reading_line(const char *text, const char *name, uint64_t scale);
void sampler_pack(msgpack_packer *pk, const char *const *name, const struct reading *v, size_t n);
void sampler_host(struct sampler *s, uint64_t mono_ns, uint64_t boot_ns);

#endif
