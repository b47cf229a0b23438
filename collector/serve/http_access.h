/* SPDX-License-Identifier: BSD-3-Clause */
/* http_access.h - who may see the status page; see http.h. Pure functions of the request. */
#ifndef COLLECTOR_HTTP_ACCESS_H
#define COLLECTOR_HTTP_ACCESS_H

#include <microhttpd.h>
#include <stdbool.h>

#include "common/auth.h"

#define HTTP_COOKIE_BYTES 160

enum http_access {
	HTTP_GRANTED,
	HTTP_SET_COOKIE, /* the token was right in the address: set the cookie, lead back */
	HTTP_DENIED,
	HTTP_FOREIGN, /* who asks by this host name needs the token */
};

enum http_access http_access_check(struct MHD_Connection *connection,
				   const struct auth_token *token, bool open);
/* The value of a Set-Cookie header. The cookie proves the token without telling it. 0 or -errno. */
int http_access_cookie(const struct auth_token *token, char out[HTTP_COOKIE_BYTES]);
/* "localhost", "127.0.0.1:80", "[::1]:80", any numeric address. */
bool http_access_own_host(const char *host);

#endif
