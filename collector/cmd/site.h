/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * site.h - the HTTP server of `crema collect` and `crema page`: address, token, certificates.
 *
 * On loopback it is open to the user's own processes; on any other address it needs the token, and
 * uses https if there are certificates. Each function that fails prints one line.
 */
#ifndef CREMA_COLLECTOR_CMD_SITE_H
#define CREMA_COLLECTOR_CMD_SITE_H

#include "collector/loop/certificates.h"
#include "collector/web/http.h"
#include "common/options.h"

struct site {
	const char *command; /* before each line */
	char at[300];	     /* its address */
	int fd;		     /* -1: none */
	bool needs_token;    /* other hosts can reach it */
	struct auth_token token;
	struct certificates certificates;
	struct http *http;
};

void site_init(struct site *site, const char *command);
/* The line for something that failed; returns err. */
int site_fail(const struct site *site, const char *what, const char *on, int err);
/* Opens --http: 0 or -errno. */
int site_listen(struct site *site, const struct options *options);
/* The token: created if there is none, or, if `optional`, only read. After site_listen(). */
int site_token(struct site *site, const struct options *options, bool optional);
int site_certificates(struct site *site, const struct options *options);
bool site_is_https(const struct site *site);
/* Starts to serve; texts, report and arg are set in `config`. */
int site_start(struct site *site, const struct options *options, struct http_config *config);
/* Stops serving; before the loop is freed. */
void site_stop(struct site *site);
void site_close(struct site *site);

#endif
