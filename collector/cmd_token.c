/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_token.c - `crema token`: shows the shared token, or makes a new one. */
#include <limits.h>
#include <stdio.h>

#include "collector/command.h"
#include "common/auth.h"
#include "common/log.h"

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
		log_line("token: '%s' is new: restart the collector, then the workers", path);
	printf("%s\n", token.text);
	return fflush(stdout) ? STATUS_FAILED : STATUS_DONE;
}

const struct command cmd_token = {
	.name = "token",
	.usage = "token [--renew] [--token-file FILE]",
	.summary = "show the token that workers and people need, or renew it",
	.scope = SCOPE_TOKEN,
	.run = run,
};
