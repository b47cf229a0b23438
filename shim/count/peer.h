/* SPDX-License-Identifier: BSD-3-Clause */
/* peer.h - the address of a connection's other end. */
#ifndef CREMA_SHIM_COUNT_PEER_H
#define CREMA_SHIM_COUNT_PEER_H

#include <stdint.h>

/* String id of "1.2.3.4:80" or "[fe80::1]:80"; 0: fd is not a connected internet stream, or the
 * strings are full. */
uint32_t peer_id(int fd);

#endif
