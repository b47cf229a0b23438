/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frames.h - what a simulated worker sends, as a pure function of the worker and the frame's
 * number.
 *
 * Nothing has to be kept until it is acknowledged: after a broken connection the same bytes are
 * generated again. Frame k holds `tasks` chunks (one record each, two with their starts) and, for
 * each second of the worker's clock, what agents send then: SAMPLE, TOTALS with all counters, DASK.
 * In TOTALS, read_bytes and tasks_done are the sums of the task records sent; the other numbers
 * only have a realistic size.
 *
 * `shared`: all workers send the same payloads, so that one core generates what hundreds of agents
 * would compress: attempts differ by the worker's id, keys are the same. Otherwise each worker has
 * different keys.
 */
#ifndef TESTS_BENCH_SWARM_FRAMES_H
#define TESTS_BENCH_SWARM_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "wire.h"

#define FRAMES_CACHE 256u

struct frames_plan {
	unsigned int tasks; /* per frame; 0: an idle worker */
	bool with_start;    /* their starts, too */
	bool shared;
	uint64_t interval_ns; /* between frames, on the worker's clock */
	uint64_t boot_ns;     /* at its start */
};

struct frames_worker {
	uint8_t id[CREMA_WORKER_ID_BYTES];
	uint32_t number;
	uint64_t stream;
	char address[40], name[24];
};

struct frames_slot {
	bool used;
	uint32_t worker;
	uint64_t k;
	struct buf frame; /* its header belongs to no worker */
	uint32_t crc;	  /* of the stored bytes */
};

struct frames {
	struct frames_plan plan;
	struct frames_slot slot[FRAMES_CACHE];
	uint64_t made;
	struct buf raw;
};

/* Messages in the frames before k, and task records among them. */
uint64_t frames_before(const struct frames_plan *plan, uint64_t k);
uint64_t frames_records_before(const struct frames_plan *plan, uint64_t k);
/* The frame that contains message seq. */
uint64_t frames_of(const struct frames_plan *plan, uint64_t seq);
/* read_bytes of the worker's first n tasks. */
uint64_t frames_read_bytes(uint64_t tasks);

/* Writes frame k into out, which is cleared first. 0 or -errno. */
int frames_make(struct frames *f, const struct frames_worker *w, uint64_t k, struct buf *out);
/* Writes frame k with one message: the worker has ended. */
int frames_goodbye(struct frames *f, const struct frames_worker *w, uint64_t k, struct buf *out);
int frames_hello(const struct frames_plan *plan, const struct frames_worker *w, struct buf *out);
void frames_release(struct frames *f);

#endif
