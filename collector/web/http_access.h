/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http_access.h - who may read the status page.
 *
 * - On loopback: processes of the collector's user and of root, as the kernel reports the other end
 *   of the connection. Not if a proxy forwards the request (a header shows it, or the Host is not
 *   this address and port): it runs as one user, but serves any.
 * - By a link "?code=...", made by `crema token --link`: valid once, for PROOF_CODE_S, until the
 *   collector ends. A cookie replaces it, which is valid for the same user or address until the
 *   collector ends.
 * - By proof: programs that have the token; their responses are sealed, see proof.h.
 * - By the token: "Authorization: Bearer TOKEN" over https, or if `bearer` allows it.
 *
 * For the loop's thread.
 */
#ifndef CREMA_COLLECTOR_WEB_HTTP_ACCESS_H
#define CREMA_COLLECTOR_WEB_HTTP_ACCESS_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/auth.h"
#include "common/buf.h"

enum http_verdict {
	HTTP_GRANTED,
	HTTP_SEALED,   /* granted; seal the response by http_access_seal() */
	HTTP_LED_BACK, /* redirected to the same page without the code, with a cookie */
	HTTP_DENIED,
	HTTP_FOREIGN, /* a process of ours, but possibly acting for others */
	HTTP_STALE,   /* the code of a link that was used or has expired */
};

struct http_access_config {
	const struct auth_token *token; /* NULL: there is none; must outlive it */
	bool open;			/* the page listens on loopback */
	bool https, bearer;
};

struct http_access;

struct http_access *http_access_new(const struct http_access_config *config);
void http_access_free(struct http_access *access);

enum http_verdict http_access_check(struct http_access *access, struct MHD_Connection *connection,
				    const char *method, const char *url);
/* Call it after HTTP_SEALED, with the same arguments. 0 or -errno. */
int http_access_seal(const struct http_access *access, struct MHD_Connection *connection,
		     const char *method, const char *url, struct buf *body);
/* Responds to everything that is not granted. */
enum MHD_Result http_access_respond(struct http_access *access, struct MHD_Connection *connection,
				    const char *url, enum http_verdict verdict);

/* "localhost" or a loopback address, and this port, and nothing else. */
bool http_access_own_host(const char *host, uint16_t port);

#endif
