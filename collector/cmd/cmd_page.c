/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_page.c - `crema page`: one status page over the journals of several collectors. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "collector/cmd/command.h"
#include "collector/cmd/site.h"
#include "collector/live/live.h"
#include "collector/loop/loop.h"
#include "collector/watch/watch.h"
#include "collector/web/http.h"
#include "collector/web/http_metrics.h"
#include "collector/web/http_page.h"
#include "collector/web/http_report.h"
#include "collector/web/live_run.h"
#include "common/clock.h"
#include "common/dirs.h"
#include "common/log.h"

#define SECOND_MS 1000

struct page {
	char dir[PATH_MAX];
	const char *const *more;
	uint64_t started_ns, started_real_ns;
	struct site site;
	struct loop *loop;
	struct live *live;
	struct watch *watch;
	struct live_run *live_run;
	struct loop_timer *second;
};

static void on_signal(void *arg, int signo)
{
	(void)signo;
	loop_stop(((struct page *)arg)->loop);
}

static void on_live(void *arg, struct buf *out)
{
	struct page *p = arg;
	struct live_journal journals = {.over = "", .each = watch_json, .arg = p->watch};

	live_json(p->live, p->started_ns, &journals, out);
}

static void on_metrics(void *arg, struct buf *out)
{
	struct page *p = arg;
	struct http_metrics from = {
		.live = p->live,
		.watch = p->watch,
		.started_real_ns = p->started_real_ns,
		.run = live_run_text(p->live_run),
	};

	http_metrics(&from, out);
}

static const struct http_text texts[] = {
	{"/", "text/html; charset=utf-8", http_page, http_page_policy, true},
	{"/live.json", "application/json", on_live, NULL, false},
	{"/metrics", HTTP_METRICS_TYPE, on_metrics, NULL, false},
};

static int on_report(void *arg, enum http_kind kind, const char *run, struct sink *out)
{
	const struct page *p = arg;

	return http_report(p->dir, p->more, kind, run, out);
}

/* A report of the last run is made once the old records were read. */
static void on_second(void *arg)
{
	struct page *p = arg;

	watch_tick(p->watch);
	live_tick(p->live);
	if (watch_is_settled(p->watch))
		live_run_tick(p->live_run, p->live);
	loop_timer_set(p->second, SECOND_MS);
}

static int start_loop(struct page *p)
{
	static const int stopping[] = {SIGTERM, SIGINT, SIGHUP};
	size_t i;
	int err = 0;

	p->loop = loop_new();
	if (!p->loop)
		return site_fail(&p->site, "start", "the event loop", -errno);
	for (i = 0; !err && i < sizeof(stopping) / sizeof(stopping[0]); i++)
		err = loop_signal(p->loop, stopping[i], on_signal, p);
	return err ? site_fail(&p->site, "watch", "signals", err) : 0;
}

static int start(struct page *p, const struct options *options)
{
	struct http_config config = {
		.texts = texts,
		.texts_n = sizeof(texts) / sizeof(texts[0]),
		.report = on_report,
		.arg = p,
	};
	int err;

	p->started_ns = clock_mono_ns();
	p->started_real_ns = clock_real_ns();
	p->more = options->more;
	signal(SIGPIPE, SIG_IGN);
	err = dirs_state(p->dir, sizeof(p->dir), options->value[OPT_dir]);
	if (err)
		return site_fail(&p->site, "find a directory for", "the journal", err);
	err = site_listen(&p->site, options);
	if (!err)
		err = site_token(&p->site, options, true);
	if (!err)
		err = site_certificates(&p->site, options);
	if (!err)
		err = start_loop(p);
	if (err)
		return err;
	p->live = live_new();
	p->watch = p->live ? watch_new(p->loop, p->live, p->dir, p->more) : NULL;
	p->live_run = live_run_new(p->loop, p->dir, p->more);
	p->second = loop_timer_new(p->loop, on_second, p);
	if (!p->watch || !p->live_run || !p->second)
		return site_fail(&p->site, "serve", p->site.at, -ENOMEM);
	loop_timer_set(p->second, SECOND_MS);
	config.loop = p->loop;
	return site_start(&p->site, options, &config);
}

static void stop(struct page *p)
{
	site_stop(&p->site);
	loop_timer_free(p->second);
	live_run_free(p->live_run);
	watch_free(p->watch);
	live_free(p->live);
	loop_free(p->loop);
	site_close(&p->site);
}

static int run(int argc, char **argv)
{
	struct options options;
	struct page *p;
	int status, err;

	if (!command_options(&cmd_page, &options, false, argc, argv, &status))
		return status;
	p = calloc(1, sizeof(*p));
	if (!p)
		return STATUS_FAILED;
	site_init(&p->site, "page");
	err = start(p, &options);
	if (!err) {
		printf("crema page: status page %s://%s/ over %u journal%s\n",
		       site_is_https(&p->site) ? "https" : "http", p->site.at,
		       options.repeated ? options.repeated : 1, options.repeated > 1 ? "s" : "");
		fflush(stdout);
		err = loop_run(p->loop);
		if (err)
			site_fail(&p->site, "wait for", "events", err);
	}
	stop(p);
	free(p);
	return err ? STATUS_FAILED : STATUS_DONE;
}

const struct command cmd_page = {
	.name = "page",
	.usage = "page [--dir DIR]... [OPTION...]",
	.summary = "serve one page, live.json and /metrics over the journals of several collectors",
	.examples = "  crema page --dir front-1 --dir front-2\n"
		    "  crema page --dir front-1 --dir front-2 --http 127.0.0.1:8992\n",
	.scope = SCOPE_VIEW,
	.run = run,
};
