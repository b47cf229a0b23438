/* SPDX-License-Identifier: BSD-3-Clause */
/* footers.c - see footers.h. */
#include "collector/retain/footers.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "collector/loop/job.h"
#include "collector/model/footer.h"
#include "collector/retain/totals.h"
#include "common/clock.h"
#include "common/dirs.h"
#include "common/log.h"

#define JOB_MS (60 * 60000) /* a large journal of an older crema gets all of them at once */
#define NICE 10
#define STALE_SECONDS 600
#define WHOLE_BYTES (UINT64_C(32) << 20) /* not urgent: little memory matters more */

struct footers {
	struct loop *loop;
	struct journal *journal;
	const char *dir, *journal_dir;
	struct loop_job *job;
	uint64_t segments; /* at the last check */
	uint64_t tasks;	   /* number ended when the cluster last became idle */
	int64_t totals_ms; /* when its runs are completed; 0: their totals are written */
	uint64_t done_ns,
		until_ns; /* segments created before have theirs; will have, after the job */
	bool failed;
};

/* Another child may be writing one: retain.h has a child that writes totals. */
static bool is_stale(const char *path)
{
	struct stat st;

	return !stat(path, &st) && time(NULL) - st.st_mtime > STALE_SECONDS;
}

static bool is_left(const char *path, const char *journal_dir, const char *name)
{
	char segment[PATH_MAX];

	if (!strncmp(name, FRAMEFILE_HIDDEN, strlen(FRAMEFILE_HIDDEN)))
		return is_stale(path);
	return framefile_created_ns(name) &&
	       !dirs_join(segment, sizeof(segment), journal_dir, name) && access(segment, F_OK) &&
	       errno == ENOENT;
}

/* Removes footers of segments that are gone, and what a killed child has left. */
static void tidy(const char *folder, const char *journal_dir)
{
	char path[PATH_MAX];
	DIR *d = opendir(folder);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (!dirs_join(path, sizeof(path), folder, e->d_name) &&
		    is_left(path, journal_dir, e->d_name))
			unlink(path);
	}
	if (d)
		closedir(d);
}

int footers_write(const char *dir, const char *journal_dir, uint64_t from_ns, uint64_t before_ns)
{
	char **names = NULL, folder[PATH_MAX];
	int i, n, err, rc = dirs_join(folder, sizeof(folder), dir, FOOTER_FOLDER);

	if (!rc)
		rc = dirs_make_own(folder);
	if (rc)
		return rc;
	tidy(folder, journal_dir);
	n = framefile_list(journal_dir, &names);
	for (i = 0; i < n; i++) {
		uint64_t created_ns = framefile_created_ns(names[i]);

		if (!created_ns || created_ns < from_ns || created_ns >= before_ns ||
		    footer_is_good(journal_dir, folder, names[i]))
			continue;
		err = footer_write(journal_dir, folder, names[i]);
		rc = rc || err == -ENOENT ? rc : err;
	}
	free(names);
	return n < 0 ? n : rc;
}

static int make(void *arg, struct sink *out)
{
	const struct footers *f = arg;
	const struct runs_source source = {
		.dir = f->dir, .now_ns = clock_real_ns(), .whole_bytes = WHOLE_BYTES};
	int rc;

	(void)out;
	if (nice(NICE) == -1)
		log_line("collect: making footers at full priority");
	rc = footers_write(f->dir, f->journal_dir, f->done_ns, f->until_ns);
	return rc ? rc : totals_update(&source, UINT64_MAX);
}

static void said(struct footers *f, int err)
{
	if (err && !f->failed)
		log_line("collect: cannot write the footers in '%s/" FOOTER_FOLDER
			 "': %s; reports read whole segments",
			 f->dir, log_error(err));
	f->failed = err != 0;
}

static void on_job_done(void *arg, int result, struct buf *out)
{
	struct footers *f = arg;

	(void)out;
	f->job = NULL;
	said(f, result);
	if (!result)
		f->done_ns = f->until_ns;
}

/* The runs that ended before the cluster became idle are in complete segments then. */
static bool have_ended(struct footers *f, const struct live *live)
{
	int64_t now = loop_now_ms(f->loop);
	uint64_t tasks;

	if (live_is_idle(live, &tasks) && tasks != f->tasks) {
		f->tasks = tasks;
		f->totals_ms = now + (int64_t)(TOTALS_SETTLED_SECONDS * 1000);
		journal_next_segment(f->journal);
	}
	return f->totals_ms && now >= f->totals_ms;
}

void footers_tick(struct footers *f, const struct live *live)
{
	struct loop_job_call call = {
		.fn = make, .arg = f, .ms = JOB_MS, .done = on_job_done, .done_arg = f};
	struct journal_stats stats;

	bool ended = have_ended(f, live);

	journal_get_stats(f->journal, &stats);
	if (f->job || (stats.segments == f->segments && !ended))
		return;
	f->totals_ms = ended ? 0 : f->totals_ms;
	f->segments = stats.segments;
	f->until_ns = journal_segment_ns(f->journal);
	f->job = loop_job_start(f->loop, &call);
}

struct footers *footers_new(struct loop *loop, struct journal *journal, const char *dir,
			    const char *journal_dir)
{
	struct footers *f = calloc(1, sizeof(*f));

	if (f)
		*f = (struct footers){
			.loop = loop, .journal = journal, .dir = dir, .journal_dir = journal_dir};
	return f;
}

void footers_end(struct footers *f, uint64_t segment_ns)
{
	if (!f)
		return;
	if (f->job)
		loop_job_cancel(f->job);
	said(f, footers_write(f->dir, f->journal_dir, segment_ns, UINT64_MAX));
	free(f);
}
