/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http2.h - whether the bytes that a client sends begin an HTTP/2 connection.
 *
 * They do if they are its preface (RFC 9113), or a TLS hello that offers h2 and no version of
 * HTTP/1 (gRPC's). Of a client that offers both, and lets the server choose, it is unknown here: 0.
 *
 * Any thread; only reads the bytes.
 */
#ifndef CREMA_SHIM_COUNT_HTTP2_H
#define CREMA_SHIM_COUNT_HTTP2_H

#include "shim/count/url.h"

int http2_in_hello(struct sent s);

/* 1 if HTTP/2 is certain. Cheap for all other bytes. */
static inline int http2_begins(struct sent s)
{
	if (!s.at || s.bytes < 16)
		return 0;
	return s.at[0] == 'P' ? sent_starts(s, "PRI * HTTP/2.0\r\n")
			      : s.at[0] == 0x16 && http2_in_hello(s);
}

#endif
