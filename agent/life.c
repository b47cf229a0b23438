/* SPDX-License-Identifier: BSD-3-Clause */
/* life.c - the agent as a process: what it inherits, its signals, its poll loop (agent.h). */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/options.h"

static void on_term(int signal_number)
{
	(void)signal_number;
	agent_stopping = 1;
}

/* Undoes what a worker may have set up for itself: affinity, cwd, umask. The agent keeps the
 * worker's priority and cgroup. */
static void settle(void)
{
	struct sigaction sa;
	cpu_set_t all;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGXFSZ, &sa, NULL); /* a size limit then becomes an error of write() */
	sa.sa_handler = on_term;
	sigaction(SIGTERM, &sa, NULL);
	umask(077);
	if (chdir("/") < 0)
		errno = 0;
	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
	/* A name lookup may block: it must not outlast a heartbeat. */
	setenv("RES_OPTIONS", "timeout:1 attempts:1", 0);
}

/* When the worker's threads are sampled next. */
static uint64_t pylines_due_of(const struct agent *a)
{
	return a->ended || a->adopted ? UINT64_MAX : pylines_due(&a->lines);
}

/* Waits for the worker's end, a socket, or the next round. */
static void wait_round(struct agent *a, uint64_t round_ns)
{
	struct pollfd fds[3] = {{-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}};
	uint64_t begin = clock_mono_ns(), now = begin;

	while (now - begin < round_ns) {
		uint64_t left = round_ns - (now - begin), due = pylines_due_of(a);
		struct timespec ts;
		int n;

		if (due < now + left)
			left = due > now ? due - now : 0;
		ts = (struct timespec){0, (long)left};

		fds[0].fd = a->ended ? -1 : a->pidfd;
		fds[0].events = POLLIN;
		if (a->has_link && uplink_fd(&a->uplink) >= 0) {
			fds[1].fd = uplink_fd(&a->uplink);
			fds[1].events = uplink_events(&a->uplink);
		} else {
			fds[1].fd = -1;
		}
		fds[2].fd = a->has_takeover ? takeover_fd(&a->takeover) : -1;
		fds[2].events = a->has_takeover ? takeover_events(&a->takeover) : 0;
		n = ppoll(fds, 3, &ts, NULL);
		now = clock_mono_ns();
		if (n < 0 || fds[0].revents)
			return;
		if (now >= due)
			pylines_look(&a->lines, now);
		/* Acknowledgements, clocks and sending do not need the shared memory. */
		if (fds[1].revents)
			uplink_run(&a->uplink, now);
		if (fds[2].revents)
			takeover_run(&a->takeover, uplink_is_ready(&a->uplink), now);
		if (a->ended && outbox_is_empty(&a->outbox))
			return;
	}
}

int agent_main(int argc, char **argv)
{
	static struct agent a;
	struct agent_options o;
	int rc = agent_parse(&o, argc, argv);

	log_name("crema-agent");
	if (rc) {
		log_line("is started by libcrema.so: --shm PATH --pid N [--start-ticks T] "
			 "[--collector VALUE] [--spool DIR]");
		return 2;
	}
	options_check_environment(SCOPE_WORKER); /* as if it were unset, but hides names */
	settle();
	rc = agent_init(&a, &o);
	if (rc) {
		if (rc != -EALREADY)
			log_line("cannot attach to '%s': %s", o.shm,
				 rc == -EPROTO ? "not the memory of this build's libcrema.so"
					       : log_error(rc));
		agent_release(&a);
		return rc == -EALREADY ? 0 : 1;
	}
	while (agent_turn(&a, clock_mono_ns(), clock_boot_ns()))
		wait_round(&a, a.drain.used > AGENT_HURRY_SLOTS ? AGENT_HURRY_NS : AGENT_POLL_NS);
	agent_release(&a);
	return 0;
}
