/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * swarm.c - many simulated workers against a real collector, with the real protocol.
 *
 *	swarm --to HOST:PORT [options]       --help lists them
 *
 * Each simulated worker has its own connection. It uses the agent's code, so token, hello, zlib
 * frames, clocks, acknowledgements and reconnects are those of agents. Exit status 0: everything
 * that was sent is acknowledged.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/bench/swarm/result.h"
#include "tests/bench/swarm/sim.h"

#define SECOND UINT64_C(1000000000)
#define AT_ONCE 128u	       /* connections that are being made */
#define SWEEP_NS (SECOND / 10) /* between checks for disconnected workers */
#define STALL_NS (60 * SECOND)
#define BLOCKS 10u
#define EVENTS 256

/* OPTION(flag, letter, argument, default, help) */
#define OPTIONS                                                                                    \
	OPTION("to", 't', "HOST:PORT", "", "the collector")                                        \
	OPTION("token", 'k', "FILE", "", "its token; else CREMA_TOKEN_FILE")                       \
	OPTION("workers", 'n', "N", "200", "simulated workers")                                    \
	OPTION("first", 'i', "N", "0", "number of the first: workers of several swarms differ")    \
	OPTION("seconds", 's', "S", "10", "how long")                                              \
	OPTION("records", 'R', "N", "0", "instead: until this many task records are sent")         \
	OPTION("rate", 'r', "N", "0", "task records per second; 0: as fast as they are taken")     \
	OPTION("frame", 'f', "N", "50", "task records in a frame; 0: idle workers")                \
	OPTION("window", 'w', "N", "8", "frames of a worker under way, 64 at most")                \
	OPTION("starts", 'S', NULL, "", "every second record is a task's start, as agents send")   \
	OPTION("shared", 'o', NULL, "", "all workers send the same keys: this side costs less")    \
	OPTION("twice", '2', "N", "0", "send each N-th frame twice")                               \
	OPTION("skip", 'x', "N", "0", "leave out each N-th frame: a loss that must be seen")       \
	OPTION("cut", 'c', "N", "0", "break a worker's connection after each N frames")            \
	OPTION("pid", 'p', "PID", "0", "the collector's process: its CPU and memory")              \
	OPTION("http", 'h', "HOST:PORT", "", "ask /metrics and live.json there each second")       \
	OPTION("page", 'P', NULL, "", "and data.json, as an open page does")                       \
	OPTION("json", 'j', "FILE", "", "write the result there, too")

struct run {
	const char *value[128];
	struct swarm swarm;
	struct sim *sim;
	uint64_t workers, limit, issued; /* limit: frames of all workers; 0: none */
	double rate;			 /* frames per second of all workers; 0: no limit */
	double seconds;
	struct result result;
};

static const struct {
	const char *flag, *argument, *fallback, *help;
	int letter;
} options[] = {
#define OPTION(flag, letter, argument, fallback, help) {flag, argument, fallback, help, letter},
	OPTIONS
#undef OPTION
};
#define OPTIONS_N (sizeof(options) / sizeof(options[0]))

static int usage(int status)
{
	size_t i;

	fprintf(status ? stderr : stdout, "usage: swarm --to HOST:PORT [options]\n");
	for (i = 0; i < OPTIONS_N; i++)
		fprintf(status ? stderr : stdout, "  --%-8s %-10s %s%s%s\n", options[i].flag,
			options[i].argument ? options[i].argument : "", options[i].help,
			*options[i].fallback ? "; default " : "", options[i].fallback);
	return status;
}

static bool parse(struct run *run, int argc, char **argv)
{
	struct option list[OPTIONS_N + 1] = {0};
	size_t i;
	int got;

	for (i = 0; i < OPTIONS_N; i++) {
		list[i].name = options[i].flag;
		list[i].has_arg = options[i].argument ? required_argument : no_argument;
		list[i].val = options[i].letter;
		run->value[options[i].letter] = *options[i].fallback ? options[i].fallback : NULL;
	}
	while ((got = getopt_long(argc, argv, "", list, NULL)) != -1) {
		if (got == '?')
			return false;
		run->value[got] = optarg ? optarg : "on";
	}
	return run->value['t'] && optind == argc;
}

static uint64_t number(const struct run *run, int letter)
{
	return strtoull(run->value[letter], NULL, 10);
}

static int plan(struct run *run)
{
	struct frames_plan *p = &run->swarm.frames.plan;
	uint64_t per_frame = number(run, 'f'), rate = number(run, 'r'), records = number(run, 'R');
	struct net_address to;
	uint64_t i, stream = clock_real_ns();
	int rc = net_parse(&to, run->value['t'], CREMA_DEFAULT_PORT);

	run->workers = number(run, 'n');
	run->swarm.window = (unsigned int)number(run, 'w');
	p->with_start = run->value['S'] != NULL;
	p->shared = run->value['o'] != NULL;
	p->tasks = (unsigned int)(p->with_start ? per_frame / 2 : per_frame);
	p->boot_ns = 1000 * SECOND;
	per_frame = frames_records_before(p, 1);
	if (rc || !run->workers || !run->swarm.window || run->swarm.window > SIM_WINDOW)
		return -EINVAL;
	run->rate = per_frame ? (double)rate / (double)per_frame : (double)run->workers;
	p->interval_ns =
		run->rate > 0 ? (uint64_t)(1e9 * (double)run->workers / run->rate) : SECOND / 5;
	run->seconds = records ? 0 : strtod(run->value['s'], NULL);
	if (records && per_frame)
		run->limit = (records + per_frame - 1) / per_frame;
	run->swarm.faults =
		(struct sim_faults){(unsigned int)number(run, '2'), (unsigned int)number(run, 'x'),
				    (unsigned int)number(run, 'c')};
	tls_settings_from_environment(&run->swarm.security.settings, "worker",
				      run->swarm.security.why, sizeof(run->swarm.security.why));
	run->sim = calloc(run->workers, sizeof(*run->sim));
	run->swarm.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!run->sim || run->swarm.epoll_fd < 0)
		return -ENOMEM;
	for (i = 0; !rc && i < run->workers; i++)
		rc = sim_init(&run->sim[i], &run->swarm, (uint32_t)(number(run, 'i') + i), &to,
			      stream);
	return rc;
}

/* Waits for events and handles them. */
static void turn(struct run *run, int timeout_ms)
{
	struct epoll_event event[EVENTS];
	int i, n = epoll_wait(run->swarm.epoll_fd, event, EVENTS, timeout_ms);

	for (i = 0; i < n; i++)
		sim_run(event[i].data.ptr, clock_mono_ns());
}

static void sweep(struct run *run)
{
	static uint64_t next;
	uint64_t i, now = clock_mono_ns();

	if (now < next)
		return;
	next = now + SWEEP_NS;
	for (i = 0; i < run->workers; i++)
		sim_run(&run->sim[i], now);
}

static int connect_all(struct run *run)
{
	uint64_t begin = clock_mono_ns(), i, from = 0, to = 0, ready;

	do {
		turn(run, 1);
		while (from < to && uplink_is_ready(&run->sim[from].uplink))
			from++;
		for (; to < run->workers && to < from + AT_ONCE; to++)
			sim_run(&run->sim[to], clock_mono_ns());
		for (i = ready = from; i < to; i++)
			ready += uplink_is_ready(&run->sim[i].uplink);
		if (to == run->workers)
			sweep(run);
		if (clock_mono_ns() - begin > STALL_NS + run->workers * SECOND / 100) {
			fprintf(stderr, "swarm: only %llu of %llu workers connected: %s\n",
				(unsigned long long)ready, (unsigned long long)run->workers,
				run->sim[from].uplink.trouble);
			return -1;
		}
	} while (ready < run->workers);
	run->result.connect_seconds = (double)(clock_mono_ns() - begin) / 1e9;
	return 0;
}

static uint64_t acked_records(const struct run *run)
{
	uint64_t i, sum = 0;

	for (i = 0; i < run->workers; i++)
		sum += sim_acked_records(&run->sim[i]);
	return sum;
}

/* Distributes the frames that are due by now. */
static void issue(struct run *run, double elapsed)
{
	uint64_t owed = run->rate > 0 ? (uint64_t)(elapsed * run->rate) : UINT64_MAX;
	struct sim *sim;

	if (run->limit && owed > run->limit)
		owed = run->limit;
	/* Without a rate each worker sends what its window allows. */
	while (run->issued < owed) {
		sim = &run->sim[run->issued % run->workers];
		if (!(run->rate > 0) && sim->due + sim->flights >= run->swarm.window)
			return;
		sim->due++;
		run->issued++;
		sim_run(sim, clock_mono_ns());
	}
}

static void work(struct run *run)
{
	uint64_t begin = clock_mono_ns(), now, sample = 0, blocks = 1;
	double elapsed, part = 0;

	result_begin(&run->result, begin);
	do {
		now = clock_mono_ns();
		elapsed = (double)(now - begin) / 1e9;
		issue(run, elapsed);
		turn(run, 1);
		sweep(run);
		if (now - begin >= sample) {
			result_sample(&run->result);
			sample += SECOND;
		}
		part = run->limit ? (double)run->issued / (double)run->limit
				  : elapsed / run->seconds;
		if (part * BLOCKS >= (double)blocks && blocks < BLOCKS) {
			blocks = (uint64_t)(part * BLOCKS) + 1;
			result_block(&run->result, now, acked_records(run), &run->swarm.stats);
		}
	} while (run->limit ? run->issued < run->limit : elapsed < run->seconds);
}

static bool finish(struct run *run)
{
	uint64_t i, done, before = 0, since = clock_mono_ns(), acked;

	for (i = 0; i < run->workers; i++)
		run->result.late_frames += run->rate > 0 ? run->sim[i].due : 0;
	while (true) {
		for (i = done = 0; i < run->workers; i++) {
			if (run->sim[i].last == UINT64_MAX && (!run->sim[i].due || !run->limit))
				sim_end(&run->sim[i]);
			done += sim_is_done(&run->sim[i]);
		}
		if (done == run->workers)
			return true;
		turn(run, 10);
		sweep(run);
		acked = acked_records(run) + done;
		if (acked != before)
			since = clock_mono_ns();
		before = acked;
		if (clock_mono_ns() - since > STALL_NS)
			return false;
	}
}

static void sum_up(struct run *run)
{
	const struct frames_plan *p = &run->swarm.frames.plan;
	struct result *r = &run->result;
	const struct sim *sim;
	uint64_t i, k;

	for (i = 0; i < run->workers; i++) {
		sim = &run->sim[i];
		k = sim->last == UINT64_MAX ? sim->most : sim->last;
		r->frames += sim->most;
		r->sent += frames_records_before(p, k);
		r->messages += frames_before(p, k) + (sim->last != UINT64_MAX);
		r->tasks += k * p->tasks;
		r->read_bytes += frames_read_bytes(k * p->tasks);
	}
	r->frames -= run->swarm.skipped;
	r->sent -= run->swarm.skipped * frames_records_before(p, 1);
	r->acked = acked_records(run);
	r->sent_again = run->swarm.sent_again;
	r->skipped = run->swarm.skipped;
	r->cuts = run->swarm.cuts;
	r->workers = run->workers;
}

static int report(struct run *run, struct watch *pages, struct watch *page)
{
	const struct watch_page *asked = NULL;
	unsigned int n = pages ? watch_stop(pages, &asked) : 0;
	FILE *out;

	sum_up(run);
	result_print(&run->result);
	if (pages)
		result_pages(asked, n);
	if (page) {
		n = watch_stop(page, &asked);
		result_pages(asked, n);
	}
	out = run->value['j'] ? fopen(run->value['j'], "we") : NULL;
	if (out) {
		result_json(&run->result, out);
		if (fclose(out))
			out = NULL;
	}
	return run->value['j'] && !out ? -1 : 0;
}

int main(int argc, char **argv)
{
	static const char *const both[] = {"metrics", "live.json", NULL};
	static const char *const data[] = {"data.json", NULL};
	struct run *run = calloc(1, sizeof(*run));
	struct watch *pages = NULL, *page = NULL;
	struct rlimit files;
	bool whole;
	uint64_t i;

	if (!run || !parse(run, argc, argv))
		return usage(2);
	if (run->value['k'])
		setenv("CREMA_TOKEN_FILE", run->value['k'], 1);
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	if (plan(run))
		return usage(2);
	run->result.pid = (pid_t)number(run, 'p');
	if (connect_all(run))
		return 1;
	if (run->value['h']) {
		pages = watch_start(run->value['h'], 1, both);
		page = run->value['P'] ? watch_start(run->value['h'], 2, data) : NULL;
	}
	work(run);
	whole = finish(run);
	result_block(&run->result, clock_mono_ns(), acked_records(run), &run->swarm.stats);
	if (report(run, pages, page))
		whole = false;
	watch_free(pages);
	watch_free(page);
	for (i = 0; i < run->workers; i++)
		sim_release(&run->sim[i]);
	frames_release(&run->swarm.frames);
	free(run->sim);
	close(run->swarm.epoll_fd);
	free(run);
	return whole ? 0 : 1;
}
