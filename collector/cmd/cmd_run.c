/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_run.c - `crema run`: executes a command with the library preloaded. */
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "collector/cmd/command.h"
#include "collector/preload/preload.h"

static int run(int argc, char **argv)
{
	struct options options;
	char exe[PATH_MAX];
	int status;
	ssize_t n;

	if (!command_options(&cmd_run, &options, true, argc, argv, &status))
		return status;
	if (options.rest >= argc)
		return command_usage(&cmd_run);
	if (options_check_environment(SCOPE_WORKER))
		return STATUS_USAGE;
	if (options.value[OPT_redact_keys])
		setenv("CREMA_REDACT_KEYS", options.value[OPT_redact_keys], 1);
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	exe[n < 0 ? 0 : n] = '\0';
	return preload_exec(exe, argv + options.rest);
}

const struct command cmd_run = {
	.name = "run",
	.usage = "run [--redact-keys] -- COMMAND [ARGUMENT...]",
	.summary = "run a command with the library preloaded",
	.scope = SCOPE_RUN,
	.run = run,
};
