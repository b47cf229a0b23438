/* SPDX-License-Identifier: BSD-3-Clause */
/* timer.c - requests on each socket, and how long a thread's timers have slept since then. */
#include "shim/count/timer.h"

#include "shim/count/fd.h"
#include "shim/libc/sys.h"

/* Private memory, one row per descriptor. `since`: the thread's `slept_ns` at the last send or
 * receive. */
static struct {
	uint64_t since;
	uint32_t tid, unanswered;
} sockets[FD_TABLE];

/* All timed-out waits, and up to where they are settled: moved, or of a segment that has ended. */
static __thread uint64_t slept_ns, settled_ns, segment_tick;
/* This thread has sent requests only on descriptors below this one. */
static __thread int asked_below;

static int is_internet_socket(int fd)
{
	return fd >= 0 && fd_lookup(fd).kind == FD_SOCKET;
}

int timer_poll_class(const struct pollfd *p, nfds_t n)
{
	for (nfds_t i = 0; i < n; i++)
		if (is_internet_socket(p[i].fd))
			return CREMA_T_network_wait;
	return n ? CREMA_T_lock_wait : -1;
}

int timer_select_class(int n, const fd_set *r, const fd_set *w, const fd_set *e)
{
	int class = -1;

	for (int fd = 0; fd < n && fd < FD_SETSIZE; fd++) {
		if (!(r && FD_ISSET(fd, r)) && !(w && FD_ISSET(fd, w)) && !(e && FD_ISSET(fd, e)))
			continue;
		if (is_internet_socket(fd))
			return CREMA_T_network_wait;
		class = CREMA_T_lock_wait;
	}
	return class;
}

static void note(const struct crema_thread *t, int fd, uint32_t unanswered)
{
	sockets[fd].since = slept_ns;
	STORE(&sockets[fd].tid, t->tid);
	STORE(&sockets[fd].unanswered, unanswered);
}

void timer_asked(int fd)
{
	struct crema_thread *t = thread_self();

	if (!t || t->owner == OWNER_NONE || (unsigned int)fd >= FD_TABLE)
		return;
	note(t, fd, 1);
	if (fd >= asked_below)
		asked_below = fd + 1;
}

/* A sleep in the middle of a response was a wait for the network. */
static void settle(struct crema_thread *t, uint64_t since)
{
	uint64_t *time = t->seg.time, ns;

	if (since < settled_ns)
		since = settled_ns;
	ns = segment_tick == t->base_tick ? slept_ns - since : 0;
	if (ns > time[CREMA_T_sleep])
		ns = time[CREMA_T_sleep];
	time[CREMA_T_sleep] -= ns;
	time[CREMA_T_network_wait] += ns;
	settled_ns = slept_ns;
}

void timer_answered(int fd, uint64_t bytes)
{
	struct crema_thread *t = thread_self();

	if ((unsigned int)fd >= FD_TABLE || !LOAD(&sockets[fd].tid))
		return;
	if (!t || LOAD(&sockets[fd].tid) != t->tid) {
		STORE(&sockets[fd].unanswered, 0);
		return;
	}
	if (bytes && !t->is_pool && slept_ns > sockets[fd].since)
		settle(t, sockets[fd].since);
	note(t, fd, 0);
}

void timer_forget(int fd)
{
	if (unlikely(LOAD(&sockets[fd].tid))) {
		STORE(&sockets[fd].tid, 0);
		STORE(&sockets[fd].unanswered, 0);
	}
}

int timer_under_way(const struct crema_thread *t)
{
	for (int fd = 0; fd < asked_below; fd++)
		if (LOAD(&sockets[fd].unanswered) && LOAD(&sockets[fd].tid) == t->tid)
			return 1;
	return 0;
}

void timer_slept(const struct crema_thread *t, uint64_t ns)
{
	if (segment_tick != t->base_tick) {
		segment_tick = t->base_tick;
		settled_ns = slept_ns;
	}
	slept_ns += ns;
}
