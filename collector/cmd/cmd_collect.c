/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_collect.c - `crema collect`: runs loop, journal, server and status page together. */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/cmd/command.h"
#include "collector/cmd/site.h"
#include "collector/ingest/server.h"
#include "collector/journal/folder.h"
#include "collector/journal/journal.h"
#include "collector/live/live.h"
#include "collector/loop/limits.h"
#include "collector/loop/listen.h"
#include "collector/loop/loop.h"
#include "collector/retain/footers.h"
#include "collector/retain/retain.h"
#include "collector/web/http.h"
#include "collector/web/http_metrics.h"
#include "collector/web/http_page.h"
#include "collector/web/http_report.h"
#include "collector/web/http_status.h"
#include "collector/web/live_run.h"
#include "common/clock.h"
#include "common/dirs.h"
#include "common/log.h"
#include "common/net.h"

#define DRAIN_MS 1000
#define SECOND_MS 1000

struct collect {
	char dir[PATH_MAX], journal_dir[PATH_MAX], name[256];
	char calibration[PATH_MAX]; /* in dir */
	char agents_at[300];
	int lock_fd, agents_fd;
	struct site site;
	uint64_t started_ns, started_real_ns;
	struct loop *loop;
	struct journal *journal;
	struct live *live;
	struct live_run *live_run;
	struct retain_config bounds;
	struct retain *retain;
	struct footers *footers;
	struct loop_timer *second;
	struct server *server;
	struct loop_listener *listener;
};

static int fail(const struct collect *c, const char *what, const char *on, int err)
{
	return site_fail(&c->site, what, on, err);
}

static int prepare_sockets(struct collect *c, const struct options *options)
{
	struct net_address address;

	c->agents_fd =
		listen_open(c->site.command, OPT_listen, options_get(options, OPT_listen),
			    CREMA_DEFAULT_PORT, c->agents_at, sizeof(c->agents_at), &address);
	return c->agents_fd < 0 ? c->agents_fd : site_listen(&c->site, options);
}

static void on_signal(void *arg, int signo)
{
	(void)signo;
	loop_stop(((struct collect *)arg)->loop);
}

static void on_status(void *arg, struct buf *out)
{
	struct collect *c = arg;

	http_status(c->server, c->journal, c->retain, c->dir, c->started_ns, out);
}

static void on_live(void *arg, struct buf *out)
{
	struct collect *c = arg;
	struct live_journal journal = {.over = retain_text(c->retain)};
	struct journal_stats stats;

	journal_get_stats(c->journal, &stats);
	journal.error = stats.error ? stats.error : stats.sync_error;
	live_json(c->live, c->started_ns, &journal, out);
}

static void on_metrics(void *arg, struct buf *out)
{
	struct collect *c = arg;
	struct http_metrics from = {
		.live = c->live,
		.server = c->server,
		.journal = c->journal,
		.journal_dir = c->journal_dir,
		.started_real_ns = c->started_real_ns,
		.run = live_run_text(c->live_run),
	};

	http_metrics(&from, out);
}

static void on_second(void *arg)
{
	struct collect *c = arg;

	live_tick(c->live);
	live_run_tick(c->live_run, c->live);
	retain_tick(c->retain, c->live);
	footers_tick(c->footers, c->live);
	loop_timer_set(c->second, SECOND_MS);
}

static const struct http_text texts[] = {
	{"/", "text/html; charset=utf-8", http_page, http_page_policy, true},
	{"/status.json", "application/json", on_status, NULL, false},
	{"/live.json", "application/json", on_live, NULL, false},
	{"/metrics", HTTP_METRICS_TYPE, on_metrics, NULL, false},
};

static int on_report(void *arg, enum http_kind kind, const char *run, struct sink *out)
{
	return http_report(((struct collect *)arg)->dir, NULL, kind, run, out);
}

static int start_journal(struct collect *c, bool ring)
{
	struct journal_config config = {
		.loop = ring ? c->loop : NULL,
		.dir = c->journal_dir,
		.segment_bytes = retain_segment_bytes(c->bounds.max_bytes),
	};
	int err;

	c->journal = journal_open(&config, &err);
	return c->journal ? 0 : fail(c, "begin a journal in", c->journal_dir, err);
}

static int start_server(struct collect *c, const struct options *options)
{
	struct server_config config = {
		.loop = c->loop,
		.journal = c->journal,
		.token = c->site.token.len ? &c->site.token : NULL,
		.insecure = options_on(options, OPT_insecure),
		.old_agents = options_on(options, OPT_old_agents),
		.tls = c->site.certificates.context,
		.name = c->name,
		.redacted_only = options_on(options, OPT_redact_keys),
		.max_connections = limits_connections(SERVER_CONNECTIONS),
	};
	int err = dirs_join(c->calibration, sizeof(c->calibration), c->dir, "calibration");

	config.calibration[0] = err ? NULL : c->calibration;
	config.calibration[1] = getenv("CREMA_CALIBRATION");
	config.live = c->live = live_new();
	c->second = loop_timer_new(c->loop, on_second, c);
	c->live_run = live_run_new(c->loop, c->dir, NULL);
	c->footers = footers_new(c->loop, c->journal, c->dir, c->journal_dir);
	if (!c->live || !c->live_run || !c->footers || !c->second)
		return fail(c, "serve", c->agents_at, -ENOMEM);
	loop_timer_set(c->second, SECOND_MS);
	gethostname(c->name, sizeof(c->name) - 1);
	c->server = server_new(&config);
	c->bounds.dir = c->dir;
	c->bounds.journal_dir = c->journal_dir;
	c->bounds.state = server_state;
	c->bounds.state_arg = c->server;
	c->retain = retain_new(c->loop, c->journal, &c->bounds);
	if (!c->server || !c->retain)
		return fail(c, "serve", c->agents_at, -ENOMEM);
	err = server_restore(c->server, c->journal_dir);
	if (err)
		return fail(c, "read", c->journal_dir, err);
	c->listener = loop_listener_new(c->loop, c->agents_fd, server_accept, c->server);
	if (!c->listener)
		return fail(c, "serve", c->agents_at, -errno);
	c->agents_fd = -1;
	return 0;
}

static int start_http(struct collect *c, const struct options *options)
{
	struct http_config config = {
		.loop = c->loop,
		.texts = texts,
		.texts_n = sizeof(texts) / sizeof(texts[0]),
		.report = on_report,
		.arg = c,
	};

	return site_start(&c->site, options, &config);
}

static int start(struct collect *c, const struct options *options)
{
	static const int stopping[] = {SIGTERM, SIGINT, SIGHUP};
	size_t i;
	int err;

	c->started_ns = clock_mono_ns();
	c->started_real_ns = clock_real_ns();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* exceeding a size limit is then an error of write() */
	c->lock_fd = folder_take(options->value[OPT_dir], c->dir, c->journal_dir);
	err = c->lock_fd < 0 ? c->lock_fd : prepare_sockets(c, options);
	if (!err)
		err = site_token(&c->site, options, options_on(options, OPT_insecure));
	if (!err)
		err = site_certificates(&c->site, options);
	if (err)
		return err;
	c->loop = loop_new();
	if (!c->loop)
		return fail(c, "start", "the event loop", -errno);
	/* Before the journal starts its thread: only the loop handles signals. */
	for (i = 0; !err && i < sizeof(stopping) / sizeof(stopping[0]); i++)
		err = loop_signal(c->loop, stopping[i], on_signal, c);
	if (err)
		return fail(c, "watch", "signals", err);
	err = start_journal(c, options_on(options, OPT_io_uring));
	if (!err)
		err = start_server(c, options);
	if (!err)
		err = start_http(c, options);
	return err;
}

static int stop(struct collect *c)
{
	uint64_t segment_ns = c->journal ? journal_segment_ns(c->journal) : 0;
	bool served = c->site.http;
	int err = 0;

	loop_listener_close(c->listener);
	if (served)
		server_drain(c->server, DRAIN_MS);
	site_stop(&c->site);
	if (c->server)
		server_note_refused(c->server);
	if (served)
		journal_note(c->journal, "stop", c->agents_at);
	server_free(c->server);
	loop_timer_free(c->second);
	live_run_free(c->live_run);
	retain_free(c->retain);
	live_free(c->live);
	if (c->journal)
		err = journal_close(c->journal);
	if (err)
		fail(c, "finish the journal in", c->journal_dir, err);
	footers_end(c->footers, segment_ns);
	loop_free(c->loop);
	site_close(&c->site);
	if (c->agents_fd >= 0)
		close(c->agents_fd);
	if (c->lock_fd >= 0)
		close(c->lock_fd);
	return err;
}

static int run(int argc, char **argv)
{
	struct options options;
	struct collect *c;
	int status, err;

	if (!command_options(&cmd_collect, &options, false, argc, argv, &status))
		return status;
	c = calloc(1, sizeof(*c));
	if (!c)
		return STATUS_FAILED;
	c->lock_fd = c->agents_fd = -1;
	site_init(&c->site, "collect");
	if (retain_parse(&c->bounds, options.value[OPT_keep], options.value[OPT_max_bytes]) ||
	    !command_read_whole(&options, &c->bounds.whole_bytes)) {
		free(c);
		return STATUS_USAGE;
	}
	err = start(c, &options);
	if (!err) {
		journal_note(c->journal, "start", c->agents_at);
		printf("crema collect: agents on %s%s, status page %s://%s/, journal in %s\n",
		       c->agents_at, c->site.certificates.context ? " (TLS)" : "",
		       site_is_https(&c->site) ? "https" : "http", c->site.at, c->dir);
		fflush(stdout);
		err = loop_run(c->loop);
		if (err)
			fail(c, "wait for", "events", err);
	}
	if (stop(c) && !err)
		err = -EIO;
	free(c);
	return err ? STATUS_FAILED : STATUS_DONE;
}

const struct command cmd_collect = {
	.name = "collect",
	.usage = "collect [OPTION...]",
	.summary = "receive the workers' records and keep them in a journal",
	.examples = "  crema collect\n"
		    "  crema collect --listen 0.0.0.0:8990 --keep 14d\n",
	.scope = SCOPE_COLLECT,
	.run = run,
};
