/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_top.c - `crema top`: the cluster's current activity. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collector/cmd/command.h"
#include "collector/top/top.h"
#include "collector/top/top_fetch.h"
#include "collector/top/top_screen.h"
#include "common/log.h"

#define WAIT_MS 1000
#define WHY_BYTES 5000 /* a path and what to do about it */

static void print_line(void *arg, enum top_style style, const char *text)
{
	(void)style;
	fprintf(arg, "%s\n", text);
}

static int print_once(const struct fetch *fetch, struct top *top)
{
	struct top_view view = {
		.sort = TOP_name, .width = TOP_PLAIN_WIDTH, .from = fetch_from(fetch)};

	top_sort(top, view.sort, false);
	top_draw(top, &view, print_line, stdout);
	if (fflush(stdout) || ferror(stdout)) {
		log_line("top: cannot write to standard output");
		return STATUS_FAILED;
	}
	return STATUS_DONE;
}

/* The first response: without one there is nothing to show. */
static int ask(struct fetch *fetch, struct top *top, char *why)
{
	const struct buf *body;

	snprintf(why, WHY_BYTES, "out of memory");
	if (fetch_start(fetch))
		return -1;
	while (!fetch_wait(fetch, -1, WAIT_MS))
		;
	body = fetch_answer(fetch, why, WHY_BYTES);
	if (!body)
		return -1;
	if (!top_parse(top, (const char *)body->data, body->len))
		return 0;
	snprintf(why, WHY_BYTES, "the answer of %s is not a live.json: it is not a crema collector",
		 fetch_from(fetch));
	return -1;
}

static int show(struct fetch *fetch, bool once)
{
	struct top top = {0};
	char why[WHY_BYTES];
	int status = STATUS_FAILED;

	if (ask(fetch, &top, why))
		log_line("top: %s", why);
	else if (once)
		status = print_once(fetch, &top);
	else if (top_screen(fetch, &top, why, sizeof(why)))
		log_line("top: %s", why);
	else
		status = STATUS_DONE;
	top_release(&top);
	return status;
}

static int run(int argc, char **argv)
{
	struct options options;
	struct fetch *fetch;
	char why[WHY_BYTES];
	int status;
	bool once;

	if (!command_options(&cmd_top, &options, false, argc, argv, &status))
		return status;
	once = options_on(&options, OPT_once);
	if (!once && (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))) {
		log_line("top: standard input or output is not a terminal; use --once");
		return STATUS_USAGE;
	}
	fetch = fetch_new(options_get(&options, OPT_http), options.value[OPT_token_file], why,
			  sizeof(why));
	if (!fetch) {
		log_line("top: %s", why);
		return STATUS_USAGE;
	}
	status = show(fetch, once);
	fetch_free(fetch);
	return status;
}

const struct command cmd_top = {
	.name = "top",
	.usage = "top [--http ADDR:PORT] [--token-file FILE] [--once]",
	.summary = "show live what the workers do and wait for",
	.examples = "  crema top\n"
		    "  crema top --once\n",
	.scope = SCOPE_TOP,
	.run = run,
};
