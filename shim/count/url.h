/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * url.h - names of files on servers, without possible secrets.
 *
 * What follows a '?' or '#' is cut off: presigned requests and XRootD's opaque part contain
 * signatures and tokens, and the same file has many of them. So is a user's name before the host.
 * Any thread; no lock, no allocation.
 */
#ifndef CREMA_SHIM_COUNT_URL_H
#define CREMA_SHIM_COUNT_URL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The first part of what a call has sent; at NULL: it cannot be seen. */
struct sent {
	const uint8_t *at;
	size_t bytes;
};

static inline int sent_starts(struct sent s, const char *text)
{
	size_t n = strlen(text);

	return s.bytes >= n && !memcmp(s.at, text, n);
}

/* String id of a URL; 0: it has no host, or there is no room for it. */
uint32_t url_id(const char *url, size_t bytes);
/* The same for the file of an HTTP request: its first line and its Host header. 0: unknown. */
uint32_t url_of_request(struct sent s);

#endif
