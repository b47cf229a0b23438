/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server_payload.h - is this inflated DATA payload an array of messages?
 *
 * Pure function over hostile bytes: no allocation, no recursion, one pass, never reads beyond n.
 * A message is an array that begins with a positive number. What the numbers after it mean is the
 * readers' business: an unknown message is journaled like any other.
 */
#ifndef CREMA_COLLECTOR_INGEST_SERVER_PAYLOAD_H
#define CREMA_COLLECTOR_INGEST_SERVER_PAYLOAD_H

#include <stddef.h>
#include <stdint.h>

/*
 * 0 if it is exactly `count` messages and nothing else, else -EBADMSG. starts: NULL, or room for
 * `count` offsets: where each message begins.
 */
int server_payload_check(const uint8_t *p, size_t n, uint32_t count, uint32_t *starts);

#endif
