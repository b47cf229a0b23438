/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gzip.h - gzip-compressed responses, for clients that accept them.
 *
 * The child that makes a report compresses it. The loop's thread only compresses its own small
 * responses, at most GZIP_SLICE bytes (0.6 ms) per turn of the loop.
 */
#ifndef CREMA_COLLECTOR_EMIT_GZIP_H
#define CREMA_COLLECTOR_EMIT_GZIP_H

#include <stdbool.h>
#include <sys/types.h>
#include <zlib.h>

#include "common/buf.h"

#define GZIP_FROM 1024 /* bytes; smaller responses stay uncompressed */
#define GZIP_SLICE (64u << 10)
#define GZIP_STATE (272u << 10) /* zlib's memory per stream */

/* Whether an Accept-Encoding header (NULL: none) accepts gzip. */
bool gzip_wanted(const char *accept);
/* 0 or -ENOMEM; deflateEnd() ends it. */
int gzip_begin(z_stream *z);
/* Compresses all of `in` at once. 0 or -ENOMEM. */
int gzip_whole(const struct buf *in, struct buf *out);
/*
 * Compresses the next piece of `in`, of which *at bytes are done. Returns the number of bytes put
 * into `out`, at least 1; 0: done; -EIO.
 */
ssize_t gzip_next(z_stream *z, const struct buf *in, size_t *at, char *out, size_t max);

#endif
