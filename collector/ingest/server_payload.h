/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server_payload.h - checks that an inflated DATA payload is an array of messages.
 *
 * Pure function over hostile bytes: no allocation, no recursion, one pass, never reads beyond n. A
 * message is an array that begins with a positive number. The readers interpret the values after
 * it: an unknown message is journaled like any other.
 */
#ifndef CREMA_COLLECTOR_INGEST_SERVER_PAYLOAD_H
#define CREMA_COLLECTOR_INGEST_SERVER_PAYLOAD_H

#include <stddef.h>
#include <stdint.h>

/*
 * 0 if it consists of exactly `count` messages, else -EBADMSG. starts: NULL, or room for `count`
 * offsets, one for the start of each message.
 */
int server_payload_check(const uint8_t *p, size_t n, uint32_t count, uint32_t *starts);

#endif
