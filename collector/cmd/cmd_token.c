/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_token.c - `crema token`: shows the shared token, creates a new one, or makes a link with
 * it. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "collector/cmd/command.h"
#include "common/auth.h"
#include "common/log.h"
#include "common/net.h"
#include "common/proof.h"
#include "wire.h"

/* The link is for a collector with this token and a page on this port. */
static int print_link(const struct auth_token *token, const char *at)
{
	bool https = !strncmp(at, "https://", 8);
	struct net_address address;
	char code[PROOF_CODE_BYTES], host[300];
	int rc;

	at += https ? 8 : !strncmp(at, "http://", 7) ? 7 : 0;
	if (net_parse(&address, at, CREMA_DEFAULT_HTTP) || address.kind != NET_TCP) {
		log_line("token: --http: '%s' is not ADDR:PORT", at);
		return STATUS_USAGE;
	}
	if (!address.host[0] || !strcmp(address.host, "0.0.0.0"))
		snprintf(address.host, sizeof(address.host), "127.0.0.1");
	rc = proof_code(token, address.port, time(NULL), code);
	if (rc) {
		log_line("token: cannot make a link: %s", log_error(rc));
		return STATUS_FAILED;
	}
	printf("http%s://%s/?code=%s\n", https ? "s" : "", net_text(host, sizeof(host), &address),
	       code);
	return fflush(stdout) ? STATUS_FAILED : STATUS_DONE;
}

static int run(int argc, char **argv)
{
	char path[PATH_MAX] = "", line[PATH_MAX + 256];
	struct auth_token token;
	struct options o;
	int rc, status;

	if (!command_options(&cmd_token, &o, false, argc, argv, &status))
		return status;
	rc = auth_token_path(path, sizeof(path), o.value[OPT_token_file]);
	if (!rc)
		rc = options_on(&o, OPT_renew) ? auth_token_renew(&token, path)
					       : auth_token_read(&token, path);
	if (rc) {
		log_line("token: %s", auth_explain(line, sizeof(line), rc, path));
		return STATUS_FAILED;
	}
	if (options_on(&o, OPT_renew))
		log_line("token: '%s' has a new token: restart the collector, then the workers",
			 path);
	if (options_on(&o, OPT_link))
		return print_link(&token, options_get(&o, OPT_http));
	printf("%s\n", token.text);
	return fflush(stdout) ? STATUS_FAILED : STATUS_DONE;
}

const struct command cmd_token = {
	.name = "token",
	.usage = "token [--renew] [--link [--http ADDR:PORT]] [--token-file FILE]",
	.summary =
		"print the token that workers need, renew it, or print a link to the status page",
	.examples = "  crema token --link                   open the status page in a browser\n",
	.scope = SCOPE_TOKEN,
	.run = run,
};
