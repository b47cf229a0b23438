/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gzip.h - answers in gzip's format, for clients that accept it.
 *
 * Reports are compressed by the child that makes them. The loop's thread compresses its own small
 * answers only, and never more than GZIP_SLICE bytes (0.6 ms) between two turns of the loop.
 */
#ifndef CREMA_COLLECTOR_EMIT_GZIP_H
#define CREMA_COLLECTOR_EMIT_GZIP_H

#include <stdbool.h>
#include <sys/types.h>
#include <zlib.h>

#include "common/buf.h"

#define GZIP_FROM 1024 /* bytes; smaller answers stay as they are */
#define GZIP_SLICE (64u << 10)
#define GZIP_STATE (272u << 10) /* what zlib holds for each stream */

/* Does an Accept-Encoding header (NULL: none) ask for gzip? */
bool gzip_wanted(const char *accept);
/* 0 or -ENOMEM; to be ended with deflateEnd(). */
int gzip_begin(z_stream *z);
/* The whole of `in` at once. 0 or -ENOMEM. */
int gzip_whole(const struct buf *in, struct buf *out);
/*
 * The next piece of a stream over `in`, of which *at bytes are taken: the number of bytes put into
 * out, at least 1; 0: that was all; -EIO.
 */
ssize_t gzip_next(z_stream *z, const struct buf *in, size_t *at, char *out, size_t max);

#endif
