/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_stuck.c - `crema stuck`: the tasks that are in one call for long, and what they wait on. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "collector/cmd/command.h"
#include "collector/top/stuck.h"
#include "collector/top/top_fetch.h"
#include "common/log.h"

#define WAIT_MS 1000
#define WHY_BYTES 5000 /* a path and what to do about it */

static int show(struct fetch *fetch, double longer)
{
	const struct buf *body;
	char why[WHY_BYTES] = "out of memory";

	if (!fetch_start(fetch)) {
		while (!fetch_wait(fetch, -1, WAIT_MS))
			;
		body = fetch_answer(fetch, why, sizeof(why));
		if (body && stuck_print(stdout, (const char *)body->data, body->len, longer))
			snprintf(why, sizeof(why),
				 "the answer of %s is not a live.json of this version",
				 fetch_from(fetch));
		else if (body && !fflush(stdout) && !ferror(stdout))
			return STATUS_DONE;
		else if (body)
			snprintf(why, sizeof(why), "cannot write to standard output");
	}
	log_line("stuck: %s", why);
	return STATUS_FAILED;
}

static int run(int argc, char **argv)
{
	struct options options;
	char why[WHY_BYTES], *end;
	struct fetch *fetch;
	double longer;
	int status;

	if (!command_options(&cmd_stuck, &options, false, argc, argv, &status))
		return status;
	longer = strtod(options_get(&options, OPT_longer), &end);
	if (*end || !isfinite(longer) || longer < 0) {
		log_line("stuck: --longer needs a number of seconds, not '%s'",
			 options_get(&options, OPT_longer));
		return STATUS_USAGE;
	}
	fetch = fetch_new(options_get(&options, OPT_http), options.value[OPT_token_file], why,
			  sizeof(why));
	if (!fetch) {
		log_line("stuck: %s", why);
		return STATUS_USAGE;
	}
	status = show(fetch, longer);
	fetch_free(fetch);
	return status;
}

const struct command cmd_stuck = {
	.name = "stuck",
	.usage = "stuck [--http ADDR:PORT] [--token-file FILE] [--longer SECONDS]",
	.summary = "list the tasks that hang: in which call, for how long, on what",
	.examples = "  crema stuck\n"
		    "  crema stuck --longer 60 --http scheduler-node:8991\n",
	.scope = SCOPE_STUCK,
	.run = run,
};
