/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_follow.c - `crema follow`: sends the journal's records elsewhere as lines of JSON, each
 * once. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "collector/cmd/command.h"
#include "collector/follow/follow.h"
#include "common/dirs.h"
#include "common/log.h"

#define RETRY_MS 1000

static volatile sig_atomic_t stopped;

static void on_signal(int signal)
{
	stopped = signal;
}

/* The first signal lets it finish; the second one has its default effect. */
static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* A retry would fail in the same way. */
static bool is_final(int rc)
{
	return rc == -EINVAL || rc == -EBUSY || rc == -ENOTSUP || rc == -ENOMEM;
}

static void say_journal(const char *dir, int rc)
{
	if (rc == -ENOENT)
		log_line("follow: '%s' has no journal: start 'crema collect' with this --dir", dir);
	else if (rc == -ESTALE)
		log_line(
			"follow: the last record there is not of the journal in '%s': give another "
			"--to or --dir",
			dir);
	else
		log_line("follow: cannot read the journal in '%s': %s", dir, log_error(rc));
}

static void say_state(const struct follow *f)
{
	if (f->lost)
		log_line("follow: segments of the journal were dropped before all of their records "
			 "had been followed: records are missing");
	if (f->damaged)
		log_line("follow: %" PRIu64 " frames of the journal cannot be read", f->damaged);
}

/* One connection to the destination. 0: done; -EAGAIN: retry; else the error was printed. */
static int follow(const char *dir, const struct destination_way *to, bool once, bool first)
{
	struct destination d;
	struct follow f = {.dir = dir, .to = &d, .once = once, .stop = &stopped};
	int rc = destination_open(&d, to, dir, &stopped);
	bool final = first || is_final(rc);

	if (rc) {
		if (final)
			log_line("follow: '%s': %s", to->name, d.why);
		return final ? rc : -EAGAIN;
	}
	rc = follow_run(&f);
	say_state(&f);
	follow_release(&f);
	destination_close(&d);
	if (!rc || stopped)
		return 0;
	if (rc == -EPIPE && d.kind == &destination_file) /* its reader may quit early */
		return 0;
	if (!*d.why) {
		say_journal(dir, rc);
		return rc;
	}
	final = once || is_final(rc);
	log_line("follow: '%s': %s%s", to->name, d.why, final ? "" : "; trying again each second");
	return final ? rc : -EAGAIN;
}

static int run(int argc, char **argv)
{
	struct options options;
	char dir[PATH_MAX];
	struct destination_way to;
	int status, rc;

	if (!command_options(&cmd_follow, &options, false, argc, argv, &status))
		return status;
	to = (struct destination_way){options_get(&options, OPT_to),
				      options_get(&options, OPT_to_login),
				      options_get(&options, OPT_to_ca_file)};
	rc = dirs_state(dir, sizeof(dir), options.value[OPT_dir]);
	if (rc) {
		log_line("follow: no data directory: %s; set HOME or give --dir", log_error(rc));
		return STATUS_USAGE;
	}
	catch_signals();
	rc = follow(dir, &to, options_on(&options, OPT_follow_once), true);
	while (rc == -EAGAIN && !stopped) {
		poll(NULL, 0, RETRY_MS);
		if (!stopped)
			rc = follow(dir, &to, options_on(&options, OPT_follow_once), false);
	}
	return rc && !stopped ? STATUS_FAILED : STATUS_DONE;
}

const struct command cmd_follow = {
	.name = "follow",
	.usage = "follow [--dir DIR] [--to FILE|tcp:HOST:PORT|unix:PATH|nats://HOST:PORT/STREAM] "
		 "[--once]",
	.summary = "copy the journal's records elsewhere as lines of JSON, as they come",
	.examples = "  crema follow --to records.jsonl\n"
		    "  crema follow --to nats://localhost:4222/crema\n"
		    "  crema follow --once | jq -c 'select(.message == \"TASK_END\").record'\n",
	.scope = SCOPE_FOLLOW,
	.run = run,
};
