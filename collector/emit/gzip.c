/* SPDX-License-Identifier: BSD-3-Clause */
/* gzip.c - content coding as in RFC 9110: a list of codings with optional weights. */
#include "collector/emit/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define GZIP_WINDOW (15 + 16) /* zlib's value for gzip */
#define GZIP_MEMORY 8

bool gzip_wanted(const char *accept)
{
	const char *at = accept, *end, *weight;
	size_t name;

	for (; at && *at; at = *end ? end + 1 : end) {
		at += strspn(at, " \t");
		end = at + strcspn(at, ",");
		name = strcspn(at, " \t;,");
		if (name != 4 || strncasecmp(at, "gzip", 4) != 0)
			continue;
		weight = memchr(at, '=', (size_t)(end - at));
		return !weight || strtod(weight + 1, NULL) > 0;
	}
	return false;
}

int gzip_begin(z_stream *z)
{
	memset(z, 0, sizeof(*z));
	return deflateInit2(z, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
			    Z_DEFAULT_STRATEGY) == Z_OK
		       ? 0
		       : -ENOMEM;
}

int gzip_whole(const struct buf *in, struct buf *out)
{
	z_stream z;
	int err = gzip_begin(&z);

	if (err)
		return err;
	err = buf_reserve(out, deflateBound(&z, in->len));
	if (!err) {
		z.next_in = in->data;
		z.avail_in = (uInt)in->len;
		z.next_out = out->data + out->len;
		z.avail_out = (uInt)(out->cap - out->len);
		deflate(&z, Z_FINISH);
		out->len += z.total_out;
	}
	deflateEnd(&z);
	return err;
}

ssize_t gzip_next(z_stream *z, const struct buf *in, size_t *at, char *out, size_t max)
{
	size_t n = in->len - *at;
	int rc;

	n = n < GZIP_SLICE ? n : GZIP_SLICE;
	z->next_in = in->data + *at;
	z->avail_in = (uInt)n;
	z->next_out = (unsigned char *)out;
	z->avail_out = (uInt)max;
	/* flush, because libmicrohttpd takes no empty piece */
	rc = deflate(z, *at + n == in->len ? Z_FINISH : Z_SYNC_FLUSH);
	*at += n - z->avail_in;
	if (z->avail_out < max)
		return (ssize_t)(max - z->avail_out);
	return rc == Z_STREAM_END || (rc == Z_BUF_ERROR && *at == in->len) ? 0 : -EIO;
}
