/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exchange.h - requests and responses on connections, counted by server (server.h).
 *
 * For protocols that answer one request after the other on a connection: HTTP/1.1, with or without
 * TLS. A request begins with the first bytes sent for a task after bytes were received; more sends
 * before its response are parts of it. It ends with the last bytes received before the next one
 * begins, before the connection is closed, or before the task's end, and is counted then. A request
 * that is closed without a response has failed; its latency is the time until then.
 *
 * The sent bytes show the protocol. HTTP's requests begin with a method. Under TLS only application
 * data is a request: neither the opening, nor an alert or a change of keys, which look like
 * application data in TLS 1.3, but are shorter than a request. If the first bytes cannot be seen,
 * or the connection is not a client's, nothing is counted.
 *
 * Any thread; no lock, no allocation.
 */
#ifndef CREMA_SHIM_COUNT_EXCHANGE_H
#define CREMA_SHIM_COUNT_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "shim/count/url.h"

struct msghdr;

/* Of calls that have succeeded: the kernel has read the same memory. */
static inline struct sent sent_buffer(const void *at, size_t bytes)
{
	struct sent s = {at, bytes};

	return s;
}
struct sent sent_vector(const struct iovec *v, size_t n);
struct sent sent_message(const struct msghdr *m);

/* `bytes` were sent on fd for the named task (0: unattributed), from `start` ticks on. */
void exchange_sent(int fd, uint64_t task, struct sent sent, uint64_t bytes, uint64_t start);
/* 1 if they are data that a user of XRootD's client other than its Python classes receives under
 * TLS. */
int exchange_received(int fd, uint64_t bytes);
/* 1 if fd is a client's connection to a server, or cannot be known; `sent` is what is sent on it.
 * On XRootD's (root://) only for requests for data that its Python classes have not announced
 * (xrootd.h), and 0 under TLS if its first words were seen. What begins as a request of XRootD's is
 * taken for one. */
int exchange_is_clients(int fd, struct sent sent);
/* fd is not a client's connection that requests one response at a time. */
void exchange_leave_out(int fd);
/* fd means something else from now on. */
void exchange_forget(int fd);
/* The named task ends: counts requests that have been answered. */
void exchange_task_ends(uint64_t task);
/* The shared memory was replaced: what was under way was counted elsewhere, or never. */
void exchange_forget_all(void);

#endif
