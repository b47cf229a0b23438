/* SPDX-License-Identifier: BSD-3-Clause */
/* tls_settings.c - given certificates, or Dask's. */
#include "common/tls_settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/dask_config.h"
#include "switch.h"

static bool copy(char *to, const char *from)
{
	return !from || snprintf(to, PATH_MAX, "%s", from) < PATH_MAX;
}

static void use(struct tls_settings *s)
{
	s->on = true;
	s->files.ca = s->ca;
	s->files.cert = s->cert;
	s->files.key = *s->key ? s->key : NULL;
}

static void from_dask(struct tls_settings *s, const char *role)
{
	char key[128];

	if (dask_config_get("distributed.comm.tls.ca-file", s->ca, sizeof(s->ca)))
		return;
	snprintf(key, sizeof(key), "distributed.comm.tls.%s.cert", role);
	if (dask_config_get(key, s->cert, sizeof(s->cert)))
		return;
	snprintf(key, sizeof(key), "distributed.comm.tls.%s.key", role);
	if (dask_config_get(key, s->key, sizeof(s->key)))
		*s->key = '\0';
	use(s);
}

int tls_settings_find(struct tls_settings *s, const struct tls_files *given, const char *role,
		      char *why, size_t size)
{
	memset(s, 0, sizeof(*s));
	if (crema_switch(getenv("CREMA_TLS"), 1) == 0) /* an unknown word leaves it on */
		return 0;
	if (!given->ca && !given->cert && !given->key) {
		from_dask(s, role);
		return 0;
	}
	if (!given->ca || !given->cert) {
		snprintf(why, size,
			 "TLS needs the authority's certificate and this host's: give both "
			 "--tls-ca-file (CREMA_TLS_CA_FILE) and --tls-cert (CREMA_TLS_CERT)");
		return -EINVAL;
	}
	if (!copy(s->ca, given->ca) || !copy(s->cert, given->cert) || !copy(s->key, given->key)) {
		snprintf(why, size, "the path of a certificate is too long");
		return -EINVAL;
	}
	use(s);
	return 0;
}

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

int tls_settings_from_environment(struct tls_settings *s, const char *role, char *why, size_t size)
{
	struct tls_files given = {.ca = variable("CREMA_TLS_CA_FILE"),
				  .cert = variable("CREMA_TLS_CERT"),
				  .key = variable("CREMA_TLS_KEY")};

	return tls_settings_find(s, &given, role, why, size);
}
