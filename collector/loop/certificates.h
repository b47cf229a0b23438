/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * certificates.h - the collector's TLS certificates: given ones, or those of the Dask scheduler.
 *
 * Agents must present one, too; browsers need the token.
 */
#ifndef CREMA_COLLECTOR_LOOP_CERTIFICATES_H
#define CREMA_COLLECTOR_LOOP_CERTIFICATES_H

#include "common/buf.h"
#include "common/tls_settings.h"

struct certificates {
	struct tls_settings settings;
	struct tls_context *context; /* NULL: no TLS */
	struct buf cert, key;	     /* PEM with a terminating NUL */
};

/* Reads them: 0 (also if there are none), or -errno with one line in `why`. */
int certificates_open(struct certificates *c, const struct tls_files *given, char *why,
		      size_t size);
void certificates_close(struct certificates *c);

#endif
