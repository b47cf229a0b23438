/* SPDX-License-Identifier: BSD-3-Clause */
/* check_collector.c - checks the collectors that workers here send to, and the status page. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collector/doctor/ask.h"
#include "collector/doctor/doctor.h"
#include "collector/top/stuck.h"
#include "collector/top/top_fetch.h"
#include "common/auth.h"
#include "common/dirs.h"
#include "common/log.h"
#include "version.h"
#include "wire.h"

#define CLOCK_WARN_NS 1000000000
#define PAGE_WAIT_MS 1000
#define STUCK_SECONDS 10.0
#define STUCK_LINES 20

static void look_at_token(struct doctor *d, const char *file)
{
	char path[PATH_MAX] = "", text[PATH_MAX + 256];
	struct auth_token token = {0};
	int err = auth_token_path(path, sizeof(path), file);

	if (!err)
		err = auth_token_read(&token, path);
	memset(&token, 0, sizeof(token));
	if (!err) {
		doctor_say(d, DOCTOR_OK, "token", "%s", path);
		return;
	}
	doctor_say(d, DOCTOR_BAD, "token", "%s", auth_explain(text, sizeof(text), err, path));
	doctor_advise(d, "the collector creates it; on other machines copy it there ('crema token' "
			 "prints it) with mode 0600, or set CREMA_TOKEN_FILE to a shared one");
}

static void look_at_clock(struct doctor *d, const struct ask *a, const char *name)
{
	double s = (double)a->offset_ns / 1e9, error = (double)a->error_ns / 1e9;

	if (llabs((long long)a->offset_ns) < CLOCK_WARN_NS + (long long)a->error_ns) {
		doctor_say(d, DOCTOR_OK, "clocks", "of %s and here differ by %.3f s (+-%.3f s)",
			   name, s, error);
		return;
	}
	doctor_say(d, DOCTOR_WARN, "clocks", "that of %s is %+.3f s (+-%.3f s) off this machine's",
		   name, s, error);
	doctor_advise(
		d,
		"reports correct for it; set the clocks with NTP (chrony) so that logs agree, too");
}

static void look_at_folder(struct doctor *d, const char *path)
{
	if (!access(path, W_OK | X_OK)) {
		doctor_say(d, DOCTOR_OK, "collector", "records go into files in %s", path);
		return;
	}
	doctor_say(d, DOCTOR_BAD, "collector", "records cannot go into '%s': %s", path,
		   log_error(errno));
	doctor_advise(d, "create the folder on a file system that all nodes share");
}

static void look_at_collector(struct doctor *d, const char *name, const char *token_file,
			      const char *spool)
{
	struct net_address address;
	struct ask a;

	if (net_parse(&address, name, CREMA_DEFAULT_PORT)) {
		doctor_say(d, DOCTOR_BAD, "collector", "'%s' is neither HOST:PORT nor dir:PATH",
			   name);
		doctor_advise(d, "correct CREMA_COLLECTOR where you start the workers");
		return;
	}
	if (address.kind == NET_DIR) {
		look_at_folder(d, address.path);
		return;
	}
	if (!ask_collector(&a, &address, token_file)) {
		doctor_say(d, DOCTOR_OK, "collector", "%s answers%s and accepts %s", name,
			   a.tls ? " (TLS)" : "",
			   a.had_token ? "your token" : "agents without a token");
		look_at_clock(d, &a, name);
		return;
	}
	if (a.unproved)
		doctor_say(d, DOCTOR_BAD, "collector",
			   "the collector at %s does not know the token; records are kept in %s",
			   name, *spool ? spool : "the agents' spool");
	else
		doctor_say(d, DOCTOR_BAD, "collector", "%s: %s", name, a.why);
	if (!a.connected)
		doctor_advise(d, "is 'crema collect' running there, and does its firewall accept "
				 "this node? meanwhile agents keep records in their spool; "
				 "CREMA_COLLECTOR=dir:PATH needs no port");
	else if (a.unproved)
		doctor_advise(
			d, "which program listens there? if it is your collector, the token here "
			   "is a different one: 'crema token' on its machine prints the right one");
	else if (a.challenged && a.newest >= CREMA_PROTOCOL)
		doctor_advise(d,
			      "%s; 'crema token' on the collector's machine prints the right one",
			      a.had_token ? "the token here is a different one"
					  : "there is no token here");
	else
		doctor_advise(d, "check the address, TLS (CREMA_TLS_*) and the release on "
				 "both ends");
}

/* Whether it is a collector. */
static bool say_page(struct doctor *d, const char *from, const json_t *live)
{
	const char *version = json_string_value(json_object_get(live, "version"));
	json_t *workers = json_object_get(live, "workers");
	json_int_t here = json_integer_value(json_object_get(workers, "connected"));
	json_int_t silent = json_integer_value(json_object_get(workers, "silent"));

	if (!version || !json_is_object(workers)) {
		doctor_say(d, DOCTOR_BAD, "page", "the answer of %s is not a collector's", from);
		return false;
	}
	doctor_say(d, silent ? DOCTOR_WARN : DOCTOR_OK, "page",
		   "%s: crema %s, %" JSON_INTEGER_FORMAT " workers connected, %" JSON_INTEGER_FORMAT
		   " silent",
		   from, version, here, silent);
	if (silent)
		doctor_advise(d, "crema top lists them; run crema doctor on their machine");
	if (strcmp(version, CREMA_VERSION)) {
		doctor_say(d, DOCTOR_WARN, "versions", "the collector is crema %s, this is %s",
			   version, CREMA_VERSION);
		doctor_advise(d, "use one release on both ends");
	}
	return true;
}

static void say_stuck(void *arg, const char *text)
{
	struct doctor *d = arg;

	if (d->stuck++ >= STUCK_LINES)
		return;
	doctor_say(d, DOCTOR_WARN, "stuck", "%s", text);
	doctor_advise(d, "crema stuck shows the task's chunk");
}

/* What `crema stuck` shows, but only calls that no task should be in. */
static void look_at_stuck(struct doctor *d, const json_t *live)
{
	size_t n = stuck_each(live, STUCK_SECONDS, say_stuck, d);
	const char *state =
		json_string_value(json_object_get(json_object_get(live, "state"), "text"));

	if (n)
		return;
	if (state) {
		doctor_say(d, DOCTOR_WARN, "stuck", "%s", state);
		doctor_advise(d, "crema report has the finding 'stalled'");
	} else {
		doctor_say(d, DOCTOR_OK, "stuck", "no task has been in one call for %.0f s",
			   STUCK_SECONDS);
	}
}

/* Only if a page was given, or a collector on this machine is checked. */
static void look_at_page(struct doctor *d)
{
	char why[5000];
	struct fetch *fetch = fetch_new(d->page, d->token_file, why, sizeof(why));
	const struct buf *body = NULL;
	json_t *live;

	if (fetch && !fetch_start(fetch)) {
		while (!fetch_wait(fetch, -1, PAGE_WAIT_MS))
			;
		body = fetch_answer(fetch, why, sizeof(why));
	}
	if (body) {
		live = json_loadb((const char *)body->data, body->len, 0, NULL);
		if (say_page(d, fetch_from(fetch), live))
			look_at_stuck(d, live);
		json_decref(live);
	} else {
		doctor_say(d, DOCTOR_UNKNOWN, "page", "%s", why);
		doctor_advise(d, "give the address of the collector's page with --http, or run "
				 "this on its machine");
	}
	fetch_free(fetch);
}

void doctor_collector(struct doctor *d)
{
	char state[PATH_MAX], spool[PATH_MAX] = "";
	const char *file;

	if (!dirs_state(state, sizeof(state), NULL))
		dirs_join(spool, sizeof(spool), state, "spool");
	if (d->collector && *d->collector)
		doctor_target(d, d->collector, "", spool);
	for (size_t i = 0; i < d->targets; i++) {
		file = d->token_file ? d->token_file : d->target[i].token_file;
		file = *file ? file : NULL;
		if (strncmp(d->target[i].address, "dir:", 4) != 0)
			look_at_token(d, file);
		look_at_collector(d, d->target[i].address, file, d->target[i].spool);
	}
	if (!d->targets) {
		doctor_say(d, DOCTOR_UNKNOWN, "collector",
			   "no address is known: no worker on this machine has one");
		doctor_advise(d, "crema doctor --collector HOST:PORT");
	}
	look_at_page(d);
}
