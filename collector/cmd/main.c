/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - crema: finds the subcommand and runs it. */
#include <stdio.h>
#include <string.h>

#include "collector/cmd/command.h"
#include "common/log.h"

static void usage(FILE *out)
{
	const struct command *const *c;

	fprintf(out, "usage: crema COMMAND [OPTION...]\n\ncommands:\n");
	for (c = command_table; *c; c++)
		fprintf(out, "  %-10s %s\n", (*c)->name, (*c)->summary);
	fprintf(out,
		"\ncrema COMMAND --help tells a command's options; crema --version the version\n");
}

static int answer(const char *what)
{
	if (!strcmp(what, "--version"))
		command_version();
	else
		usage(stdout);
	return fflush(stdout) ? STATUS_FAILED : STATUS_DONE;
}

int main(int argc, char **argv)
{
	const struct command *const *c;

	if (argc < 2) {
		usage(stderr);
		return STATUS_USAGE;
	}
	for (c = command_table; *c; c++) {
		if (!strcmp(argv[1], (*c)->name))
			return (*c)->run(argc - 1, argv + 1);
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help") ||
	    !strcmp(argv[1], "--version"))
		return answer(argv[1]);
	log_line("there is no command '%s'", argv[1]);
	usage(stderr);
	return STATUS_USAGE;
}
