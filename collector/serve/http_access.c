/* SPDX-License-Identifier: BSD-3-Clause */
/* http_access.c - the token, the cookie, and the Host of a request. */
#include "collector/serve/http_access.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define COOKIE_NAME "crema"
#define HEX_BYTES (2 * AUTH_MAC_BYTES + 1)

/* A mac over constants that no handshake uses: random nonces are not all zero. */
static int cookie_value(const struct auth_token *token, char out[HEX_BYTES])
{
	static const uint8_t zero[AUTH_NONCE_BYTES];
	static const uint8_t purpose[16] = "status page";
	uint8_t mac[AUTH_MAC_BYTES];
	int err = auth_mac(token, zero, zero, purpose, mac);
	size_t i;

	for (i = 0; !err && i < sizeof(mac); i++)
		snprintf(out + 2 * i, 3, "%02x", mac[i]);
	return err;
}

int http_access_cookie(const struct auth_token *token, char out[HTTP_COOKIE_BYTES])
{
	char hex[HEX_BYTES];
	int err = cookie_value(token, hex);

	if (!err)
		snprintf(out, HTTP_COOKIE_BYTES, "%s=%s; HttpOnly; SameSite=Strict", COOKIE_NAME,
			 hex);
	return err;
}

static bool same(const char *given, const char *want, size_t len)
{
	return given && strlen(given) == len && auth_equal(given, want, len);
}

bool http_access_own_host(const char *host)
{
	char name[64], address[16];
	size_t n;

	if (!host)
		return false;
	if (host[0] == '[') {
		n = strcspn(++host, "]");
		if (host[n] != ']')
			return false;
	} else {
		n = strcspn(host, ":");
	}
	if (n >= sizeof(name))
		return false;
	memcpy(name, host, n);
	name[n] = '\0';
	return !strcmp(name, "localhost") || inet_pton(AF_INET, name, address) == 1 ||
	       inet_pton(AF_INET6, name, address) == 1;
}

enum http_access http_access_check(struct MHD_Connection *connection,
				   const struct auth_token *token, bool open)
{
	enum http_access denied = open ? HTTP_FOREIGN : HTTP_DENIED;
	const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
	const char *bearer, *asked, *cookie;
	char hex[HEX_BYTES];

	asked = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token");
	if (token && same(asked, token->text, token->len))
		return HTTP_SET_COOKIE;
	if (open && http_access_own_host(host))
		return HTTP_GRANTED;
	if (!token)
		return denied;
	bearer = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");
	if (bearer && !strncmp(bearer, "Bearer ", 7) && same(bearer + 7, token->text, token->len))
		return HTTP_GRANTED;
	cookie = MHD_lookup_connection_value(connection, MHD_COOKIE_KIND, COOKIE_NAME);
	if (!cookie_value(token, hex) && same(cookie, hex, sizeof(hex) - 1))
		return HTTP_GRANTED;
	return denied;
}
