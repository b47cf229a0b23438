/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xrootd.h - which requests of XRootD's client come from its Python classes.
 *
 * XrdCl's own threads send the requests of all its users. Those of the Python classes show their
 * tasks (py_xrootd.c) and are announced here before they are sent, with the position and the size
 * of the data. A request for data on the wire that matches none is that of another user (ROOT's
 * TFile, pyxrootd): any task that runs may have made it. A request may be sent again, as after a
 * redirection: it is announced until it is answered. Other requests return no data that a task is
 * charged with.
 *
 * Announcements are counted in a table by a hash: a request that meets another's hash is taken for
 * announced. Under TLS the requests cannot be read; there only bytes that arrive while nothing is
 * announced show another user.
 *
 * Any thread; no lock, no allocation.
 */
#ifndef CREMA_SHIM_COUNT_XROOTD_H
#define CREMA_SHIM_COUNT_XROOTD_H

#include <stdint.h>

#include "shim/count/url.h"

enum xrootd_request {
	XROOTD_READ,
	XROOTD_VECTOR, /* by its first chunk */
	XROOTD_READS,  /* any, as the client chooses them */
	XROOTD_WRITES,
	XROOTD_COPIES, /* both */
	XROOTD_OTHER,
};

/* Announces a request until xrootd_answered(); never 0. A READ of 0 bytes reads to the end. */
uint32_t xrootd_announce(enum xrootd_request kind, uint64_t offset, uint64_t bytes);
void xrootd_answered(uint32_t announced);
/* 1 if nothing is announced. */
int xrootd_is_idle(void);

/* 1 for a client's first words to a server, or, if it connected before the process was armed, a
 * request. */
int xrootd_begins(struct sent s);
/* 1 if this message requests data, or sends some, and is not announced. */
int xrootd_is_anyones(struct sent s);

/* A forked child's client has nothing under way. */
void xrootd_forget(void);

#endif
