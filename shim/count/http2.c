/* SPDX-License-Identifier: BSD-3-Clause */
/* http2.c - the hello's list of protocols (RFC 8446, RFC 7301). */
#include "shim/count/http2.h"

#include <string.h>

#define CLIENT_HELLO 1
#define PROTOCOLS 16 /* the extension's type */
#define TOO_SHORT SIZE_MAX

/* Takes n bytes from the front. NULL: there are fewer. */
static const uint8_t *take(struct sent *s, size_t n)
{
	const uint8_t *at = s->at;

	if (n > s->bytes)
		return NULL;
	s->at += n;
	s->bytes -= n;
	return at;
}

/* A number of n bytes. */
static size_t number(struct sent *s, size_t n)
{
	const uint8_t *at = take(s, n);
	size_t value = 0;

	if (!at)
		return TOO_SHORT;
	for (size_t i = 0; i < n; i++)
		value = value << 8 | at[i];
	return value;
}

/* A field that begins with its length, a number of n bytes. at NULL: it is not whole. */
static struct sent field(struct sent *s, size_t n)
{
	size_t bytes = number(s, n);
	struct sent f = {bytes == TOO_SHORT ? NULL : take(s, bytes), bytes};

	return f;
}

static int is_text(struct sent s, const char *text)
{
	return s.bytes == strlen(text) && !memcmp(s.at, text, s.bytes);
}

/* 1: h2 is in this list, and no version of HTTP/1. */
static int only_h2(struct sent list)
{
	int h2 = 0;

	while (list.bytes) {
		struct sent name = field(&list, 1);

		if (!name.at || is_text(name, "http/1.1") || is_text(name, "http/1.0"))
			return 0;
		h2 |= is_text(name, "h2");
	}
	return h2;
}

int http2_in_hello(struct sent s)
{
	struct sent hello, all;

	/* The record's type, version and length; the length of its one message. */
	if (!take(&s, 5) || number(&s, 1) != CLIENT_HELLO)
		return 0;
	hello = field(&s, 3);
	if (!hello.at || !take(&hello, 2 + 32) || !field(&hello, 1).at || !field(&hello, 2).at ||
	    !field(&hello, 1).at)
		return 0;
	all = field(&hello, 2);
	while (all.at && all.bytes) {
		size_t type = number(&all, 2);
		struct sent one = field(&all, 2);

		if (!one.at)
			return 0;
		if (type == PROTOCOLS) {
			struct sent list = field(&one, 2);

			return list.at && only_h2(list);
		}
	}
	return 0;
}
