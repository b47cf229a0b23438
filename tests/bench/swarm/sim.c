/* SPDX-License-Identifier: BSD-3-Clause */
/* sim.c - one simulated worker. */
#include "tests/bench/swarm/sim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/clock.h"

/* Callbacks of the uplink */

static bool skipped(const struct sim *sim, uint64_t k)
{
	unsigned int skip = sim->swarm->faults.skip;

	return skip && k % skip == skip - 1 && k != sim->last;
}

static int make(struct sim *sim, uint64_t k)
{
	struct frames *frames = &sim->swarm->frames;

	return k == sim->last ? frames_goodbye(frames, &sim->worker, k, &sim->out)
			      : frames_make(frames, &sim->worker, k, &sim->out);
}

static void take_off(struct sim *sim, uint64_t end_seq)
{
	unsigned int at = (sim->flight_at + sim->flights++) % SIM_WINDOW;

	sim->flight[at].end_seq = end_seq;
	sim->flight[at].sent_ns = clock_mono_ns();
}

static int next_frame(void *arg, const unsigned char **p, size_t *bytes)
{
	struct sim *sim = arg;
	struct sim_faults *faults = &sim->swarm->faults;
	uint64_t k;
	int rc;

	while (sim->due && skipped(sim, sim->next)) {
		sim->swarm->skipped += sim->next >= sim->most;
		sim->due--;
		sim->next++;
	}
	if (!sim->again &&
	    (!sim->due || sim->flights == sim->swarm->window || sim->next > sim->last))
		return 0;
	k = sim->again ? sim->next - 1 : sim->next;
	rc = make(sim, k);
	if (rc)
		return rc;
	*p = sim->out.data;
	*bytes = sim->out.len;
	if (sim->again) {
		sim->again = false;
		sim->swarm->sent_again++;
		return 1;
	}
	take_off(sim, k == sim->last ? frames_before(&sim->swarm->frames.plan, k) + 1
				     : frames_before(&sim->swarm->frames.plan, k + 1));
	sim->due--;
	sim->next++;
	sim->again = faults->twice && k % faults->twice == 0;
	sim->cut = faults->cut && sim->next > sim->most && sim->next % faults->cut == 0;
	if (sim->next > sim->most)
		sim->most = sim->next;
	return 1;
}

static void rewind_to(void *arg, uint64_t seq)
{
	struct sim *sim = arg;
	uint64_t k, before = sim->next;

	/* Agents forget what a collector has acknowledged; this may be another collector. */
	if (seq < sim->acked_seq)
		seq = sim->acked_seq;
	k = frames_of(&sim->swarm->frames.plan, seq);
	if (sim->last != UINT64_MAX && seq > frames_before(&sim->swarm->frames.plan, sim->last))
		k = sim->last + 1;
	sim->flights = 0;
	sim->again = false;
	sim->next = k;
	if (before > k)
		sim->due += before - k;
	if (seq > sim->acked_seq)
		sim->acked_seq = seq;
}

static void acked(void *arg, uint64_t seq)
{
	struct sim *sim = arg;
	uint64_t now = clock_mono_ns();

	if (seq > sim->acked_seq)
		sim->acked_seq = seq;
	while (sim->flights && sim->flight[sim->flight_at].end_seq <= seq) {
		/* All goodbyes are sent at once: they are not part of the load. */
		if (sim->last == UINT64_MAX ||
		    seq <= frames_before(&sim->swarm->frames.plan, sim->last))
			stats_add(&sim->swarm->stats, now - sim->flight[sim->flight_at].sent_ns);
		sim->flight_at = (sim->flight_at + 1) % SIM_WINDOW;
		sim->flights--;
	}
}

/* The worker */

int sim_init(struct sim *sim, struct swarm *swarm, uint32_t number, const struct net_address *to,
	     uint64_t stream)
{
	struct frames_worker *w = &sim->worker;

	memset(sim, 0, sizeof(*sim));
	sim->swarm = swarm;
	sim->fd = -1;
	sim->last = UINT64_MAX;
	w->number = number;
	w->stream = stream;
	snprintf(w->address, sizeof(w->address), "tcp://10.%u.%u.%u:40000", number >> 16,
		 number >> 8 & 255, number & 255);
	snprintf(w->name, sizeof(w->name), "worker-%u", number);
	if (auth_random(w->id, sizeof(w->id)))
		return -EIO;
	sim->source = (struct uplink_source){sim,	 w->id,	    stream, &sim->hello,
					     next_frame, rewind_to, acked};
	uplink_init(&sim->uplink, to, &sim->source, &swarm->security);
	return frames_hello(&swarm->frames.plan, w, &sim->hello);
}

void sim_release(struct sim *sim)
{
	uplink_release(&sim->uplink);
	buf_release(&sim->hello);
	buf_release(&sim->out);
}

static void watch(struct sim *sim)
{
	int fd = uplink_fd(&sim->uplink);
	struct epoll_event event = {.data.ptr = sim};

	event.events = fd < 0 ? 0 : (uint32_t)uplink_events(&sim->uplink);
	if (fd >= 0 && (fd != sim->fd || event.events != sim->events))
		epoll_ctl(sim->swarm->epoll_fd, fd == sim->fd ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd,
			  &event);
	sim->fd = fd;
	sim->events = event.events;
}

void sim_run(struct sim *sim, uint64_t now_ns)
{
	uplink_run(&sim->uplink, now_ns);
	if (sim->cut && uplink_fd(&sim->uplink) >= 0) {
		shutdown(uplink_fd(&sim->uplink), SHUT_RDWR);
		sim->swarm->cuts++;
	}
	sim->cut = false;
	buf_release(&sim->out);
	watch(sim);
}

void sim_end(struct sim *sim)
{
	sim->last = sim->next > sim->most ? sim->next : sim->most;
	sim->due = sim->last + 1 - sim->next;
}

bool sim_is_done(const struct sim *sim)
{
	return sim->last != UINT64_MAX &&
	       sim->acked_seq > frames_before(&sim->swarm->frames.plan, sim->last);
}

uint64_t sim_acked_records(const struct sim *sim)
{
	const struct frames_plan *plan = &sim->swarm->frames.plan;
	uint64_t k = sim->acked_seq ? frames_of(plan, sim->acked_seq) : 0;

	if (sim->last != UINT64_MAX && k > sim->last)
		k = sim->last;
	return frames_records_before(plan, k);
}
