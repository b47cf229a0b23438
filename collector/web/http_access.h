/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http_access.h - who may read the status page.
 *
 *	on loopback	processes of the collector's user and of root, by the kernel's word for who
 *			the other end of the connection is; not if a proxy passes the request on
 *			(a header shows it, or the Host is not this address and port): it runs as
 *			somebody, for anybody
 *	by a link	"?code=...", made by `crema token --link`: good once, for PROOF_CODE_S, and
 *not beyond the collector's end. A cookie takes its place, which is good for the same user or
 *address until the collector ends by proof	programs that know the token; their answers are
 *sealed, see proof.h by the token	"Authorization: Bearer TOKEN" over https, or where `bearer`
 *allows it
 *
 * Lives in the loop's thread.
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
	HTTP_SEALED,   /* granted, by http_access_seal() */
	HTTP_LED_BACK, /* to the same page without the code, with a cookie */
	HTTP_DENIED,
	HTTP_FOREIGN, /* a process of ours, but for whom? */
	HTTP_STALE,   /* the code of a link that was used or is too old */
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
/* After HTTP_SEALED, with the same arguments. 0 or -errno. */
int http_access_seal(const struct http_access *access, struct MHD_Connection *connection,
		     const char *method, const char *url, struct buf *body);
/* The answer to all that is not granted. */
enum MHD_Result http_access_respond(struct http_access *access, struct MHD_Connection *connection,
				    const char *url, enum http_verdict verdict);

/* "localhost" or a loopback address, and this port; whole, and nothing else. */
bool http_access_own_host(const char *host, uint16_t port);

#endif
