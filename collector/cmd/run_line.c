/* SPDX-License-Identifier: BSD-3-Clause */
/* run_line.c - see run_line.h. */
#include "collector/cmd/run_line.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/cmd/run_client.h"
#include "collector/emit/emit_text.h"
#include "collector/metrics/budget.h"
#include "collector/runs/read_runs.h"
#include "common/clock.h"
#include "common/dirs.h"
#include "common/log.h"

#define MOST_WORKERS 4096
#define AGAIN_US 100000

struct process {
	uint64_t pid, start_ticks;
};

/* Numbers from the records of the command's workers. */
struct sums {
	const struct process *workers;
	size_t n;
	bool client;  /* none, but the command waited for some */
	size_t known; /* to which these records belong */
	size_t runs, tasks, failed, unfinished;
	double last_start;
	bool is_last; /* no run began after the one found */
	char id[RUN_ID_BYTES];
	struct value khz, tasks_per_s; /* of the last run: events if it had chunks, else tasks */
	double cpu_percent;	       /* NAN: unknown */
};

void run_line_begin(struct run_line *line, const char *dir)
{
	const char *temp = getenv("TMPDIR");
	int fd;

	line->dir = dir;
	snprintf(line->path, sizeof(line->path), "%.4000s/crema-run-XXXXXX",
		 temp && *temp ? temp : "/tmp");
	fd = mkostemp(line->path, O_CLOEXEC);
	if (fd < 0 || setenv("CREMA_RUN_FILE", line->path, 1))
		line->path[0] = '\0';
	if (fd >= 0)
		close(fd);
}

void run_line_drop(struct run_line *line)
{
	if (line->path[0])
		unlink(line->path);
	line->path[0] = '\0';
}

static size_t read_workers(const char *path, struct process *v)
{
	unsigned long long pid, ticks;
	FILE *f = fopen(path, "re");
	size_t n = 0;

	while (f && n < MOST_WORKERS && fscanf(f, "%llu %llu", &pid, &ticks) == 2)
		v[n++] = (struct process){pid, ticks};
	if (f)
		fclose(f);
	return n;
}

static bool is_ours(const struct sums *s, const struct worker *w)
{
	size_t i;

	for (i = 0; i < s->n; i++) {
		if (w->pid.type == VALUE_UINT && w->pid.v.u == s->workers[i].pid &&
		    w->start_ticks.type == VALUE_UINT &&
		    w->start_ticks.v.u == s->workers[i].start_ticks)
			return true;
	}
	return false;
}

/* Attempts that raised and were not repeated. */
static size_t failed_in(const struct run *r)
{
	size_t i, n = 0;

	for (i = 0; i < r->attempts.n; i++)
		n += r->attempts.v[i]->waste_reason &&
		     !strcmp(r->attempts.v[i]->waste_reason, "erred");
	return n;
}

static int take_run(void *arg, const struct run *r, size_t at, size_t n)
{
	bool ours = r->attempts.n && is_ours(arg, r->attempts.v[0]->worker);
	struct sums *s = arg;
	struct budget b;
	struct facts f;
	int rc;

	(void)at, (void)n;
	if (!ours) {
		s->is_last = s->is_last && !(time_or_0(r->start) > s->last_start);
		return 0;
	}
	rc = facts_build(&f, r);
	if (rc)
		return rc;
	s->runs++;
	s->tasks += f.tasks.attempts;
	s->failed += failed_in(r);
	s->unfinished += r->running;
	s->khz = f.chunks.attempts ? metric_event_rate_wall_khz(&f) : value_null();
	s->tasks_per_s = f.chunks.attempts
				 ? value_null()
				 : value_ratio(metric_num_tasks(&f), metric_wall_time(&f), 1);
	s->cpu_percent = budget_build(&b, &f) && b.thread_seconds > 0 && !f.all.unmeasured
				 ? b.class_s[CREMA_T_cpu] / b.thread_seconds * 100
				 : (double)NAN;
	s->last_start = time_or_0(r->start);
	s->is_last = true;
	memcpy(s->id, r->id, sizeof(s->id));
	facts_release(&f);
	return 0;
}

static int read_runs(struct sums *s, const char *dir)
{
	const struct runs_source source = {.dir = dir, .now_ns = clock_real_ns()};
	const struct process *workers = s->workers;
	struct runs runs;
	struct model m;
	size_t i, n = s->n;
	int rc;

	*s = (struct sums){.workers = workers, .n = n, .cpu_percent = (double)NAN};
	memset(&runs, 0, sizeof(runs));
	model_init(&m);
	rc = runs_read_each(&m, &runs, &source, take_run, s);
	for (i = 0; i < m.workers.n; i++)
		s->known += is_ours(s, m.workers.v[i]);
	runs_release(&runs);
	model_release(&m);
	return rc < 0 ? rc : 0;
}

static void say(const struct sums *s, const char *dir, char *out, size_t size)
{
	char rate[HUMAN_BYTES], more[96] = "", next[96] = "crema report";

	if (!s->n && s->client) {
		snprintf(out, size,
			 "the client was measured, but this command did not start its workers: see "
			 "'crema report' where their collector runs");
		return;
	}
	if (!s->n) {
		snprintf(out, size,
			 "nothing was measured: this command started no Dask worker and no coffea "
			 "executor; if its workers run elsewhere, see 'crema report' where their "
			 "collector runs, otherwise 'crema doctor'");
		return;
	}
	if (!s->runs && s->known == s->n) {
		snprintf(out, size, "%zu worker%s measured, but no task ran there", s->n,
			 plural(s->n));
		return;
	}
	if (!s->runs) {
		snprintf(out, size,
			 "%zu worker%s measured, but none of their tasks is in '%s': run crema "
			 "report where the collector that has the records runs",
			 s->n, plural(s->n), dir);
		return;
	}
	if (s->failed)
		snprintf(more, sizeof(more), ", %zu failed", s->failed);
	if (s->runs == 1 && s->khz.type != VALUE_NULL)
		snprintf(more + strlen(more), sizeof(more) - strlen(more), ", %s",
			 human(s->khz, AS_KHZ, rate));
	if (s->runs == 1 && s->tasks_per_s.type != VALUE_NULL)
		snprintf(more + strlen(more), sizeof(more) - strlen(more), ", %s tasks/s",
			 human(s->tasks_per_s, AS_IS, rate));
	if (s->runs == 1 && !isnan(s->cpu_percent))
		snprintf(more + strlen(more), sizeof(more) - strlen(more), ", %.0f %% CPU",
			 s->cpu_percent);
	if (s->runs > 1)
		snprintf(out, size,
			 "%zu tasks in %zu runs measured%s; details: crema report --list", s->tasks,
			 s->runs, more);
	else {
		if (!s->is_last)
			snprintf(next, sizeof(next), "crema report --run %s", s->id);
		snprintf(out, size, "%zu task%s measured%s; details: %s", s->tasks,
			 plural(s->tasks), more, next);
	}
}

/* In the child: prints a line repeatedly, each better than the one before, until nothing is
 * running. */
static void child(int out, const char *dir, struct sums *s)
{
	char line[PATH_MAX + 256];

	for (;;) {
		if (!s->n || !read_runs(s, dir)) {
			memset(line, 0, sizeof(line));
			say(s, dir, line, sizeof(line));
			if (write(out, line, sizeof(line)) != (ssize_t)sizeof(line))
				_exit(1);
		}
		if (!s->n || (s->runs && !s->unfinished))
			_exit(0);
		usleep(AGAIN_US);
	}
}

/* Reads whole lines until the child ends or the time is up. */
static bool listen_to(int in, char *line, size_t size)
{
	uint64_t end = clock_mono_ns() + RUN_LINE_MS * UINT64_C(1000000);
	struct pollfd wait = {.fd = in, .events = POLLIN};
	bool any = false;
	uint64_t now;
	size_t used = 0;
	ssize_t n;

	while ((now = clock_mono_ns()) < end) {
		if (poll(&wait, 1, (int)((end - now) / 1000000) + 1) <= 0)
			continue;
		n = read(in, line + size + used, size - used);
		if (n <= 0)
			break;
		used += (size_t)n;
		if (used == size) {
			memcpy(line, line + size, size);
			any = true;
			used = 0;
		}
	}
	return any;
}

void run_line_end(struct run_line *line, pid_t command)
{
	static struct process workers[MOST_WORKERS];
	static char text[2 * (PATH_MAX + 256)];
	struct sums s = {.workers = workers};
	char dir[PATH_MAX];
	int ends[2], status;
	pid_t pid;

	if (!line->path[0] || dirs_state(dir, sizeof(dir), line->dir))
		return;
	s.n = read_workers(line->path, workers);
	s.client = !s.n && run_client_waited(line->dir, command);
	run_line_drop(line);
	if (pipe(ends))
		return;
	pid = fork();
	if (!pid) {
		close(ends[0]);
		child(ends[1], dir, &s);
	}
	close(ends[1]);
	if (pid > 0) {
		if (listen_to(ends[0], text, sizeof(text) / 2))
			log_line("%s", text);
		else
			log_line("%zu worker%s measured; details: crema report", s.n, plural(s.n));
		kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	close(ends[0]);
}
