/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim.h - one simulated worker: its connection (the agent's code, agent/uplink.h) and what the
 * collector has not acknowledged yet.
 *
 * A sim sends frames as long as it has some to send (`due`) and at most `window` are
 * unacknowledged. One thread for all of them.
 */
#ifndef TESTS_BENCH_SWARM_SIM_H
#define TESTS_BENCH_SWARM_SIM_H

#include "agent/uplink.h"
#include "tests/bench/swarm/frames.h"
#include "tests/bench/swarm/stats.h"

#define SIM_WINDOW 64u

struct sim_faults {
	unsigned int twice; /* every n-th frame is repeated immediately; 0: none */
	unsigned int skip;  /* every n-th frame is left out: the sum must show it */
	unsigned int cut;   /* the connection is cut after this many frames */
};

struct swarm {
	struct frames frames;
	struct stats stats;
	struct sim_faults faults;
	struct uplink_security security; /* as an agent's, one for all workers */
	unsigned int window;
	int epoll_fd;
	uint64_t sent_again, skipped, cuts; /* frames, frames, connections */
};

struct sim {
	struct swarm *swarm;
	struct uplink uplink;
	struct uplink_source source;
	struct frames_worker worker;
	struct buf hello, out;
	int fd;
	uint32_t events;
	bool was_ready, again, cut;
	uint64_t due;	    /* frames it may still send */
	uint64_t next;	    /* the frame to be sent now */
	uint64_t most;	    /* the most frames sent so far */
	uint64_t last;	    /* its goodbye's frame, UINT64_MAX: not known yet */
	uint64_t acked_seq; /* messages below are acknowledged */
	struct {
		uint64_t end_seq, sent_ns;
	} flight[SIM_WINDOW];
	unsigned int flight_at, flights;
};

int sim_init(struct sim *sim, struct swarm *swarm, uint32_t number, const struct net_address *to,
	     uint64_t stream);
void sim_release(struct sim *sim);
/* Does everything that can be done now. */
void sim_run(struct sim *sim, uint64_t now_ns);
/* It ends after the frames that it has sent; the goodbye is sent in a separate one. */
void sim_end(struct sim *sim);
bool sim_is_done(const struct sim *sim);
/* Task records that are acknowledged. */
uint64_t sim_acked_records(const struct sim *sim);

#endif
