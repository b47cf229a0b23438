/* SPDX-License-Identifier: BSD-3-Clause */
/* url.c - extracts URLs from requests. */
#define _GNU_SOURCE
#include "shim/count/url.h"

#include <string.h>

#include "shim/shim.h"

#define URL_BYTES 1024
#define HOST_BYTES 256

static size_t before(const char *text, size_t n, const char *ends)
{
	size_t i = 0;

	while (i < n && !strchr(ends, text[i]))
		i++;
	return i;
}

uint32_t url_id(const char *url, size_t bytes)
{
	char clean[URL_BYTES];
	const char *host = memmem(url, bytes, "://", 3), *at;
	size_t n = before(url, bytes, "?#"), scheme;

	if (!host || (size_t)(host + 3 - url) >= n || n > sizeof(clean))
		return 0;
	scheme = (size_t)(host + 3 - url);
	host += 3;
	at = memchr(host, '@', before(host, n - scheme, "/"));
	if (at)
		host = at + 1;
	n -= (size_t)(host - url);
	memcpy(clean, url, scheme);
	memcpy(clean + scheme, host, n);
	return arena_bulk_id(clean, (uint32_t)(scheme + n));
}

/* The value of the Host header; its bytes in *n, 0: there is none. */
static const char *host_of(const char *text, size_t bytes, size_t *n)
{
	const char *at = text, *end = text + bytes, *line;

	*n = 0;
	while ((line = memchr(at, '\n', (size_t)(end - at)))) {
		at = line + 1;
		if (end - at > 5 && !strncasecmp(at, "host:", 5)) {
			at += 5;
			while (at < end && *at == ' ')
				at++;
			*n = before(at, (size_t)(end - at), "\r\n");
			return at + *n < end ? at : NULL;
		}
	}
	return NULL;
}

uint32_t url_of_request(struct sent s)
{
	const char *text = (const char *)s.at, *target, *host;
	char url[URL_BYTES] = "http://";
	size_t n, host_bytes, at = strlen(url);

	if (!text || s.bytes < 5 || (memcmp(text, "GET ", 4) && memcmp(text, "HEAD ", 5)))
		return 0;
	target = text + before(text, s.bytes, " ") + 1;
	n = before(target, s.bytes - (size_t)(target - text), " ?#\r\n");
	if (n > 7 && !memcmp(target, url, 7))
		return url_id(target, n);
	host = host_of(text, s.bytes, &host_bytes);
	if (!host || !host_bytes || host_bytes > HOST_BYTES || !n || *target != '/' ||
	    at + host_bytes + n > sizeof(url))
		return 0;
	memcpy(url + at, host, host_bytes);
	memcpy(url + at + host_bytes, target, n);
	return url_id(url, at + host_bytes + n);
}
