/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - crema: finds the subcommand and runs it. */
#include <stdio.h>
#include <string.h>

#include "collector/command.h"
#include "common/log.h"
#include "version.h"

static const struct command *const table[] = {&cmd_collect, &cmd_report, &cmd_run};

static void usage(FILE *out)
{
	size_t i;

	fprintf(out, "usage: crema COMMAND [OPTION...]\n\ncommands:\n");
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		fprintf(out, "  %-10s %s\n", table[i]->name, table[i]->summary);
	fprintf(out,
		"\ncrema COMMAND --help tells a command's options; crema --version the version\n");
}

static int answer(const char *what)
{
	if (!strcmp(what, "--version"))
		printf("crema %s\n", CREMA_VERSION);
	else
		usage(stdout);
	return fflush(stdout) ? STATUS_FAILED : STATUS_DONE;
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc < 2) {
		usage(stderr);
		return STATUS_USAGE;
	}
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (!strcmp(argv[1], table[i]->name))
			return table[i]->run(argc - 1, argv + 1);
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help") ||
	    !strcmp(argv[1], "--version"))
		return answer(argv[1]);
	log_line("there is no command '%s'", argv[1]);
	usage(stderr);
	return STATUS_USAGE;
}
