/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.h - a task's requests to servers that other threads send and receive: XrdCl's own, or an
 * event loop's.
 *
 * From begin to end a lock wait of the task's own thread is a wait for the network (overlap.h), and
 * so is an epoll_wait() of any of its threads that times out (a library's threads may take turns at
 * one socket). The response has already been counted as received by a thread without a task.
 * request_received() moves it from there to the task (claimed_network_read_bytes).
 *
 * A task is given by its name (task.h), so it may have ended meanwhile. Any thread, with or without
 * the GIL; no lock, no allocation.
 */
#ifndef CREMA_SHIM_COUNT_REQUEST_H
#define CREMA_SHIM_COUNT_REQUEST_H

#include <stdint.h>

void request_begin(uint64_t task);
void request_end(uint64_t task);
/* 1 while a task, by its slot (thread.h), has one. */
int request_under_way(uint32_t owner);
/* Bytes of a response that has arrived, as received from the network. */
void request_received(uint64_t task, uint64_t bytes);

#endif
