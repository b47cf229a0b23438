/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inflate.h - the two costly steps of reading a frame: its checksum and inflating its payload.
 *
 * Here they use zlib, as weak symbols. A program that reads very many frames brings its own
 * (collector/cmd/inflate.c); the agent does not need to, which saves a library. Any thread.
 */
#ifndef CREMA_COMMON_INFLATE_H
#define CREMA_COMMON_INFLATE_H

#include <stddef.h>
#include <stdint.h>

/* zlib's crc32 of what came before (0: nothing) and these bytes. */
uint32_t inflate_crc(uint32_t crc, const void *p, size_t n);
/*
 * Inflates [p, p+n) into raw if it is one zlib stream of exactly raw_bytes, and returns 0.
 * Otherwise -EBADMSG, or -ENOMEM. raw has space for one additional byte.
 */
int inflate_exactly(const void *p, size_t n, void *raw, size_t raw_bytes);

#endif
