/* SPDX-License-Identifier: BSD-3-Clause */
/* command.c - common code of all subcommands. */
#include "collector/cmd/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "collector/runs/run_state.h"
#include "collector/web/http.h"
#include "common/log.h"
#include "common/units.h"
#include "version.h"

int command_usage(const struct command *command)
{
	fprintf(stderr, "usage: crema %s\n", command->usage);
	return STATUS_USAGE;
}

void command_version(void)
{
	printf("crema %s\n", CREMA_VERSION);
	if (!http_has_tls())
		printf("portable build: the status page has no https\n");
#ifndef CREMA_URING
	printf("without io_uring\n");
#endif
#ifndef CREMA_LIBDEFLATE
	printf("without libdeflate: the collector inflates with zlib, which is slower\n");
#endif
#ifndef CREMA_NATS
	printf("without NATS: 'crema follow' writes to files and sockets only\n");
#endif
}

/* CREMA_STALL_AFTER. False: not a time; a line was logged. */
static bool set_stall(const struct options *options)
{
	const char *text = options->value[OPT_stall_after];
	uint64_t ns;

	if (!text)
		return true;
	if (units_time(text, &ns) || !ns) {
		log_line("CREMA_STALL_AFTER: '%s' is not a time, such as 30s or 5m", text);
		return false;
	}
	run_stall_seconds = (double)ns / 1e9;
	return true;
}

bool command_options(const struct command *command, struct options *options, bool more, int argc,
		     char **argv, int *status)
{
	char text[2048];

	*status = STATUS_USAGE;
	if (options_parse(options, command->scope, argc, argv))
		return false;
	if (options_on(options, OPT_help) || options_on(options, OPT_help_all)) {
		snprintf(text, sizeof(text), "usage: crema %s\n\n%s\n\nexamples:\n%s",
			 command->usage, command->summary, command->examples);
		options_help(stdout, command->scope, text, command_width(),
			     options_on(options, OPT_help_all));
		*status = fflush(stdout) ? STATUS_FAILED : STATUS_DONE;
		return false;
	}
	if (options_on(options, OPT_version)) {
		command_version();
		*status = fflush(stdout) ? STATUS_FAILED : STATUS_DONE;
		return false;
	}
	if (!more && options->rest < argc) {
		log_line("%s: unexpected argument '%s'", command->name, argv[options->rest]);
		return false;
	}
	return set_stall(options);
}

bool command_read_whole(const struct options *options, uint64_t *bytes)
{
	const char *text = options->value[OPT_read_whole];

	*bytes = 0;
	if (!text || !units_bytes(text, bytes))
		return true;
	log_line("--read-whole: '%s' is not a number of bytes, such as 192Mi", text);
	return false;
}

void command_wrote(const struct options *options, const char *path)
{
	if (strcmp(path, "-") != 0 && !options_on(options, OPT_quiet))
		log_line("wrote '%s'", path);
}

bool command_colour(void)
{
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0 && !(no && *no);
}

unsigned int command_width(void)
{
	struct winsize size = {0};

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		return 0;
	return size.ws_col;
}
