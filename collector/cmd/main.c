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
	fprintf(out, "\nrun 'crema help COMMAND' for a command's options, 'crema version' for the "
		     "version\n");
}

static const struct command *command_named(const char *name)
{
	const struct command *const *c;

	for (c = command_table; *c; c++) {
		if (!strcmp(name, (*c)->name))
			return *c;
	}
	return NULL;
}

static int unknown(const char *name)
{
	static const char *const answers[] = {"help", "version"};
	const char *words[32], *near;
	size_t n = 0;

	while (command_table[n] && n < 28) {
		words[n] = command_table[n]->name;
		n++;
	}
	words[n] = answers[0];
	words[n + 1] = answers[1];
	words[n + 2] = NULL;
	near = options_nearest(name, strlen(name), words);
	if (near)
		log_line("there is no command '%s'; did you mean 'crema %s'?", name, near);
	else
		log_line("there is no command '%s'; 'crema help' lists them", name);
	return STATUS_USAGE;
}

static int help(int argc, char **argv)
{
	const struct command *c = argc > 2 ? command_named(argv[2]) : NULL;
	char option[] = "--help";
	char *given[] = {argv[2], option, NULL};

	if (c)
		return c->run(2, given);
	if (argc > 2)
		return unknown(argv[2]);
	usage(stdout);
	return fflush(stdout) ? STATUS_FAILED : STATUS_DONE;
}

static bool is_one_of(const char *word, const char *a, const char *b, const char *c)
{
	return !strcmp(word, a) || !strcmp(word, b) || !strcmp(word, c);
}

int main(int argc, char **argv)
{
	const struct command *c;

	if (argc < 2) {
		usage(stderr);
		return STATUS_USAGE;
	}
	c = command_named(argv[1]);
	if (c)
		return c->run(argc - 1, argv + 1);
	if (is_one_of(argv[1], "help", "--help", "-h"))
		return help(argc, argv);
	if (is_one_of(argv[1], "version", "--version", "-V")) {
		command_version();
		return fflush(stdout) ? STATUS_FAILED : STATUS_DONE;
	}
	return unknown(argv[1]);
}
