/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net.h - which task owns the bytes on a socket: the one that wrote the request owns the response.
 *
 * Each send binds the descriptor to the task of its thread (to none, if the thread has none). An
 * asyncio transport is bound by its write(), whose context is the requester's; what the loop sends
 * later, or writes while it receives (TLS answers a change of keys), does not bind it again. So it
 * does not matter who opened a kept-alive connection or which thread receives; a connection's
 * opening is charged to the task that needed it. An HTTP/2 connection (http2.h, or a client that is
 * known to have made one) has no single owner: it is marked as shared, its bytes are counted as
 * unattributed, and what a task that uses it receives and sends is unknown.
 *
 * A native thread (thread.h) that sends to a server, or has an event loop do so, works for a
 * library with threads of its own, as libarrow is: any task that runs at that moment may have
 * asked, so what these tasks receive and send is unknown. XRootD's client is an
 * exception if its Python classes have announced the request (request.h, xrootd.h).
 */
#ifndef CREMA_SHIM_COUNT_NET_H
#define CREMA_SHIM_COUNT_NET_H

#include <stdint.h>

#include "shim/count/exchange.h"

/* This thread sends on fd. */
void net_send_binds(int fd);
/* An asyncio transport writes on fd for the named task (task.h; 0: none), whose stack with that
 * number (byte_sample.h; 0: unknown) requested it. */
void net_bind(int fd, uint64_t name, uint32_t stack);
/* 1 if a transport has been bound on fd. */
int net_is_bound(int fd);
/* fd serves several tasks at once from now on. */
void net_mark_shared(int fd);
/* fd is one of Dask's own connections. */
void net_mark_comm(int fd);
/* fd means something else from now on. */
void net_forget(int fd);
/* This thread has no block and uses fd: the numbers of the task that owns it are unknown. */
void net_unseen(int fd);

/* Counts bytes received (or sent, from `start` ticks on) on fd to its owner. */
void net_received(int fd, uint64_t bytes);
void net_sent(int fd, uint64_t bytes, struct sent sent, uint64_t start);

/* A native thread asks a server for something, for an unknown task. */
void net_native_asks(void);
/* The note (shim_note()) that the first call of it leaves; a literal. */
void net_native_note(const char *text);
/* gRPC's Python library is patched: native threads that send HTTP/2 are its own, and which tasks
 * call is known. */
void net_grpc_tells(void);

#endif
