/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inflate.h - the two costly steps of reading a frame: its checksum and inflating its payload.
 *
 * Here they are zlib's, as weak symbols. A program that reads very many frames brings its own
 * (collector/cmd/inflate.c); the agent has no need to, and no further library then. Any thread.
 */
#ifndef CREMA_COMMON_INFLATE_H
#define CREMA_COMMON_INFLATE_H

#include <stddef.h>
#include <stdint.h>

/* zlib's crc32 of what came before (0: nothing) and these bytes. */
uint32_t inflate_crc(uint32_t crc, const void *p, size_t n);
/*
 * All of [p, p+n) is one zlib stream that inflates to exactly raw_bytes: they are in raw then, and
 * 0 is returned. Else -EBADMSG, or -ENOMEM. raw has room for one byte more than that.
 */
int inflate_exactly(const void *p, size_t n, void *raw, size_t raw_bytes);

#endif
