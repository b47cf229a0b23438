/* SPDX-License-Identifier: BSD-3-Clause */
/* http_gzip.c - content coding, as RFC 9110 says: a list of codings, each with a weight or not. */
#include "collector/serve/http_gzip.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* zlib's way to say gzip */
#define GZIP_MEMORY 8

bool http_gzip_wanted(const char *accept)
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

bool http_gzip(struct MHD_Connection *connection, struct buf *body)
{
	const char *accept =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept-Encoding");
	struct buf out = BUF_INIT;
	z_stream z = {0};

	if (body->error || body->len < HTTP_GZIP_FROM || !http_gzip_wanted(accept))
		return false;
	if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return false;
	if (!buf_reserve(&out, deflateBound(&z, body->len))) {
		z.next_in = body->data;
		z.avail_in = (uInt)body->len;
		z.next_out = out.data;
		z.avail_out = (uInt)out.cap;
		if (deflate(&z, Z_FINISH) == Z_STREAM_END)
			out.len = z.total_out;
	}
	deflateEnd(&z);
	if (!out.len) {
		buf_release(&out);
		return false;
	}
	buf_release(body);
	*body = out;
	return true;
}
