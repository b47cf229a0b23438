/* SPDX-License-Identifier: BSD-3-Clause */
/* site.c - see site.h. */
#include "collector/cmd/site.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "collector/loop/listen.h"
#include "collector/web/http_page.h"
#include "common/log.h"
#include "common/net.h"

void site_init(struct site *s, const char *command)
{
	memset(s, 0, sizeof(*s));
	s->command = command;
	s->fd = -1;
}

int site_fail(const struct site *s, const char *what, const char *on, int err)
{
	log_line("%s: cannot %s '%s': %s", s->command, what, on, log_error(err));
	return err;
}

int site_listen(struct site *s, const struct options *options)
{
	struct net_address address;

	s->fd = listen_open(s->command, OPT_http, options_get(options, OPT_http),
			    CREMA_DEFAULT_HTTP, s->at, sizeof(s->at), &address);
	if (s->fd < 0)
		return s->fd;
	s->needs_token = !listen_is_loopback(s->fd);
	return 0;
}

int site_token(struct site *s, const struct options *options, bool optional)
{
	char path[PATH_MAX] = "", text[PATH_MAX + 256];
	int err = auth_token_path(path, sizeof(path), options->value[OPT_token_file]);

	if (optional && !s->needs_token)
		return auth_token_read(&s->token, path), 0;
	err = err ? err : auth_token_make(&s->token, path);
	if (err)
		log_line("%s: %s", s->command, auth_explain(text, sizeof(text), err, path));
	return err;
}

int site_certificates(struct site *s, const struct options *o)
{
	struct tls_files given = {o->value[OPT_tls_ca_file], o->value[OPT_tls_cert],
				  o->value[OPT_tls_key]};
	char why[PATH_MAX + 256];
	int err = certificates_open(&s->certificates, &given, why, sizeof(why));

	if (err)
		log_line("%s: %s", s->command, why);
	return err;
}

bool site_is_https(const struct site *s)
{
	return s->needs_token && s->certificates.context;
}

int site_start(struct site *s, const struct options *options, struct http_config *config)
{
	int err;

	config->listen_fd = s->fd;
	config->token = s->token.len ? &s->token : NULL;
	config->open = !s->needs_token;
	config->bearer = options_on(options, OPT_http_bearer);
	if (site_is_https(s)) {
		config->cert = (const char *)s->certificates.cert.data;
		config->key = (const char *)s->certificates.key.data;
	}
	if (config->cert && !http_has_tls()) {
		log_line("%s: --http %s: this build has no TLS for the page: let it listen on "
			 "127.0.0.1 and use 'ssh -L', or use the Debian package",
			 s->command, s->at);
		return -EPROTONOSUPPORT;
	}
	http_page_init();
	s->http = http_start(config, &err);
	s->fd = -1;
	return s->http ? 0 : site_fail(s, "serve", s->at, err);
}

void site_stop(struct site *s)
{
	http_stop(s->http);
	s->http = NULL;
}

void site_close(struct site *s)
{
	certificates_close(&s->certificates);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}
