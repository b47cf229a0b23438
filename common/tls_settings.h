/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls_settings.h - which certificates a program uses: the given ones, else those of the Dask
 * cluster.
 *
 * CREMA_TLS=off turns both off. Given ones must be complete: authority and certificate, and a key
 * unless it is in the certificate's file. Dask's are distributed.comm.tls.ca-file, and .cert and
 * .key of its role; without both of the first there is no TLS.
 */
#ifndef CREMA_COMMON_TLS_SETTINGS_H
#define CREMA_COMMON_TLS_SETTINGS_H

#include <limits.h>
#include <stdbool.h>

#include "common/tls.h"

struct tls_settings {
	bool on;
	struct tls_files files; /* into the texts below */
	char ca[PATH_MAX], cert[PATH_MAX], key[PATH_MAX];
};

/*
 * given: texts that are NULL are not given. role: "scheduler" or "worker". 0, or -EINVAL with one
 * line in `why`.
 */
int tls_settings_find(struct tls_settings *s, const struct tls_files *given, const char *role,
		      char *why, size_t size);
/* The same, from CREMA_TLS_CA_FILE, CREMA_TLS_CERT and CREMA_TLS_KEY. */
int tls_settings_from_environment(struct tls_settings *s, const char *role, char *why, size_t size);

#endif
