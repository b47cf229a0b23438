/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timer.h - a wait for descriptors that times out is sleep, unless it waited for a server.
 *
 * asyncio.sleep() is an epoll_wait() that times out: the loop has its own socket pair in the set,
 * and often idle connections that are kept for later. So the contents of an epoll set prove
 * nothing. These prove that a thread waited for a server:
 * - it has connected, or sent, on an internet socket and nothing has come back yet ("under way").
 *   Such a wait is network at once;
 * - bytes come in on a connection without another request before them: the wait was in the middle
 *   of a response. The sleep since the last bytes of this connection is moved to the network then,
 *   as far as it is in the same segment.
 *
 * poll() names what it waits for: with an internet socket in the set that is the network, timed out
 * or not; else a lock, or sleep once it has timed out. select() names what has come, and nothing
 * once it has timed out: then it is treated like epoll. Either without descriptors is only sleep.
 *
 * Only for the task's own thread; a pool thread moves nothing. A word per descriptor and
 * thread-local clocks, no lock. If another thread receives on the socket, or closes it, nothing is
 * under way any more.
 */
#ifndef CREMA_SHIM_COUNT_TIMER_H
#define CREMA_SHIM_COUNT_TIMER_H

#include <poll.h>
#include <sys/select.h>

#include "shim/count/thread.h"

/* The time class of a wait for these descriptors; -1: for none. */
int timer_poll_class(const struct pollfd *p, nfds_t n);
int timer_select_class(int n, const fd_set *r, const fd_set *w, const fd_set *e);

/* This thread connects or sends on the internet socket fd. */
void timer_asked(int fd);
/* Bytes were received on it; 0: it has ended. */
void timer_answered(int fd, uint64_t bytes);
/* fd means something else from now on. */
void timer_forget(int fd);

/* 1 while t, the calling thread's, has a request without a response. */
int timer_under_way(const struct crema_thread *t);
/* A wait of t that timed out was charged as sleep. */
void timer_slept(const struct crema_thread *t, uint64_t ns);

#endif
