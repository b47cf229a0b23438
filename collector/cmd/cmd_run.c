/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd_run.c - `crema run`: executes a command with the library preloaded, waits until the agents
 * below it have sent their records, and prints a line about them.
 */
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "collector/cmd/command.h"
#include "collector/cmd/run_child.h"
#include "collector/cmd/run_line.h"
#include "collector/preload/preload.h"
#include "collector/preload/program.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/run_name.h"

/* It runs, and what it starts may be measured: the library stays in LD_PRELOAD. */
static void warn_of_musl(const char *command)
{
	char path[PATH_MAX];

	if (program_uses_musl(command, path, sizeof(path)))
		log_line("run: '%s' is not measured, because it uses musl "
			 "(Alpine): " PROGRAM_MUSL_ADVICE,
			 path);
}

/* say: print the line at the end. */
static int run_and_wait(char **command, const char *dir, uint64_t begin_mono_ns, bool say)
{
	struct run_line line = {"", dir};
	struct run_child c;

	if (say)
		run_line_begin(&line, dir);
	if (run_child_start(&c, command, dir, begin_mono_ns)) {
		run_line_drop(&line);
		return preload_exec(command);
	}
	run_child_wait(&c);
	if (c.ran) {
		run_child_agents(&c);
		run_line_end(&line, c.pid);
	} else {
		run_line_drop(&line); /* the reason was printed */
	}
	return run_child_end(&c);
}

static int run(int argc, char **argv)
{
	uint64_t begin_mono_ns = clock_mono_ns();
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
	if (options.value[OPT_name]) {
		if (!run_name_is_good(options.value[OPT_name])) {
			log_line("--name, CREMA_RUN_NAME: a name is " RUN_NAME_WORDS);
			return STATUS_USAGE;
		}
		setenv("CREMA_RUN_NAME", options.value[OPT_name], 1);
	}
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	exe[n < 0 ? 0 : n] = '\0';
	if (!preload_prepare(exe))
		return preload_exec(argv + options.rest);
	warn_of_musl(argv[options.rest]);
	return run_and_wait(argv + options.rest, options.value[OPT_dir], begin_mono_ns,
			    !options_on(&options, OPT_quiet));
}

const struct command cmd_run = {
	.name = "run",
	.usage = "run [--name NAME] [--quiet] [--redact-keys] -- COMMAND [ARGUMENT...]",
	.summary = "run a command with the library preloaded",
	.examples = "  crema run -- python analysis.py\n"
		    "  crema run --name 'ttbar, 50k chunks' -- python analysis.py\n"
		    "  crema run -- dask worker tcp://scheduler:8786\n"
		    "  CREMA_QUIET=on crema run -- python analysis.py\n",
	.scope = SCOPE_RUN,
	.run = run,
};
