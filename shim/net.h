/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net.h - whose bytes come and go on a socket: who wrote the request owns what comes back.
 *
 * Each send binds the descriptor to the task of its thread (to nobody, if the thread has none). An
 * asyncio transport is bound by its write(), whose context is the requester's; what the loop sends
 * later does not bind it again. So it does not matter who opened a kept-alive connection or which
 * thread receives. Multiplexed protocols have no owner of a connection: what they carry is bound to
 * the last writer, and the package that does it must be named as unattributed.
 */
#ifndef CREMA_SHIM_NET_H
#define CREMA_SHIM_NET_H

#include <stdint.h>

/* This thread sends on fd. */
void net_send_binds(int fd);
/* An asyncio transport writes on fd for the named task (task.h; 0: none). */
void net_bind(int fd, uint64_t name);
/* fd is one of Dask's own connections. */
void net_mark_comm(int fd);
/* fd means something else from now on. */
void net_forget(int fd);

/* Counts bytes received (or sent) on fd to its owner. */
void net_received(int fd, uint64_t bytes);
void net_sent(int fd, uint64_t bytes);

#endif
