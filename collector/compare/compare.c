/* SPDX-License-Identifier: BSD-3-Clause */
/* compare.c - finds the runs to compare, and gathers the data of each. */
#include "collector/compare/compare.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "collector/runs/read_runs.h"
#include "collector/print/render.h"
#include "common/clock.h"
#include "common/dirs.h"
#include "common/log.h"

static bool is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Splits DIR:RUN in place. A name that is neither DIR:RUN nor a directory does not change *dir. */
static const char *split(char *name, const char **dir)
{
	char *colon;

	if (is_directory(name)) {
		*dir = name;
		return NULL;
	}
	colon = strrchr(name, ':');
	if (!colon)
		return name;
	*colon = '\0';
	if (is_directory(name)) {
		*dir = name;
		return colon + 1;
	}
	*colon = ':';
	return name;
}

/* A sum over events, so it does not depend on chunking. */
static uint64_t content_of(const struct run *r)
{
	const struct attempt *a;
	uint64_t sum = 0, hash;
	struct value v;
	size_t i;

	for (i = 0; i < r->attempts.n; i++) {
		a = r->attempts.v[i];
		v = attempt_events(a);
		if (!a->counted || !attempt_is_chunk(a) || v.type == VALUE_NULL || !a->filename)
			continue;
		hash = hash_bytes(1, a->filename, strlen(a->filename));
		sum += hash * (uint64_t)value_number(v, NULL);
	}
	return sum;
}

static bool is_fixed(const struct facts *f)
{
	const struct series *s = &f->tracking->workers;
	size_t i;

	for (i = 1; i < s->n; i++) {
		if (s->v[i].value != s->v[0].value)
			return false;
	}
	return s->n > 0;
}

/* A name from the command line: a run and where it is. */
struct named {
	const char *dir, *which;
	const char *const *more;
};

static bool same_source(const struct named *name, const struct compare_dir *d)
{
	return !strcmp(name->dir, d->path) && name->more == d->more;
}

/* Reads the named runs in this directory. */
static int read_dir(struct comparison *c, struct compare_dir *d, const struct named *names,
		    size_t n, uint64_t whole_bytes)
{
	struct runs_source source = {.dir = d->path,
				     .more = d->more,
				     .now_ns = clock_real_ns(),
				     .whole_bytes = whole_bytes};
	const char **which = calloc(n, sizeof(*which));
	struct run **found = calloc(n, sizeof(*found));
	size_t i, k = 0;
	int rc = which && found ? 0 : -ENOMEM;

	for (i = 0; i < n && !rc; i++) {
		if (same_source(&names[i], d))
			which[k++] = names[i].which;
	}
	if (!rc)
		rc = runs_read(&d->model, &d->runs, &source, which, found, k);
	for (i = k = 0; i < n && rc >= 0; i++) {
		if (same_source(&names[i], d))
			c->run[i].run = found[k++];
	}
	free(which);
	free(found);
	return rc < 0 ? rc : 0;
}

static struct compare_dir *dir_of(struct comparison *c, const struct named *name,
				  const struct named *names, size_t n, uint64_t whole_bytes,
				  struct buf *why, int *rc)
{
	struct compare_dir *d;
	size_t i;

	for (i = 0; i < c->dir_count; i++) {
		if (same_source(name, &c->dirs[i]))
			return &c->dirs[i];
	}
	d = &c->dirs[c->dir_count++];
	d->path = name->dir;
	d->more = name->more;
	dirs_text(d->text, sizeof(d->text), d->path, d->more);
	model_init(&d->model);
	*rc = read_dir(c, d, names, n, whole_bytes);
	if (*rc)
		report_fail(why, *rc, "cannot read '%s': %s", d->model.dir ? d->model.dir : d->path,
			    log_error(*rc));
	else if (!d->runs.n && !d->model.left_out)
		*rc = report_fail(why, -ENOENT, "no run in '%s'", d->text);
	return *rc ? NULL : d;
}

static int take_run(struct compared *c, const struct compare_dir *d, const char *which,
		    struct buf *why)
{
	double cores;
	int rc;

	c->dir = d->text;
	if (!c->run)
		return report_no_run(&d->model, which, d->text, why);
	rc = facts_build(&c->facts, c->run);
	c->facts_built = true;
	if (!rc)
		rc = lines_gather(&c->lines, c->run);
	if (rc)
		return report_fail(why, rc, "cannot compare '%s': %s", c->run->id, log_error(rc));
	c->fixed = is_fixed(&c->facts);
	c->content = content_of(c->run);
	cores = compared_number(c, "total_cores");
	c->cores = isnan(cores) || cores > 1e9 ? 0 : lround(cores);
	c->rate = compared_number(c, "event_rate_wall_khz") * 1000;
	return 0;
}

static int load(struct comparison *c, const struct named *names, size_t n, uint64_t whole_bytes,
		struct buf *why)
{
	struct compare_dir *d;
	size_t i, k;
	int rc = 0;

	for (i = 0; i < n && !rc; i++) {
		d = dir_of(c, &names[i], names, n, whole_bytes, why, &rc);
		if (!d)
			return rc;
		c->n++;
		rc = take_run(&c->run[i], d, names[i].which, why);
		for (k = 0; k < i && !rc; k++) {
			if (c->run[k].run == c->run[i].run)
				rc = report_fail(why, -EINVAL, "run '%s' is given twice",
						 c->run[i].run->id);
		}
	}
	return rc;
}

int compare_load(struct comparison *c, char *const *names, size_t n,
		 const struct compare_source *source, struct buf *why)
{
	struct named *named = calloc(n, sizeof(*named));
	size_t i;
	int rc;

	memset(c, 0, sizeof(*c));
	c->run = calloc(n, sizeof(*c->run));
	c->dirs = calloc(n, sizeof(*c->dirs));
	for (i = 0; i < n && named; i++) {
		named[i].dir = source->dir;
		named[i].which = split(names[i], &named[i].dir);
		if (named[i].dir == source->dir && source->more && *source->more)
			named[i].more = source->more;
	}
	if (!c->run || !c->dirs || !named)
		rc = report_fail(why, -ENOMEM, "cannot compare: %s", log_error(-ENOMEM));
	else
		rc = load(c, named, n, source->whole_bytes, why);
	free(named);
	return rc;
}

void compare_release(struct comparison *c)
{
	size_t i;

	for (i = 0; i < c->n; i++) {
		if (c->run[i].facts_built)
			facts_release(&c->run[i].facts);
		lines_release(&c->run[i].lines);
	}
	compare_functions_release(c);
	for (i = 0; i < c->dir_count; i++) {
		runs_release(&c->dirs[i].runs);
		model_release(&c->dirs[i].model);
	}
	free(c->run);
	free(c->dirs);
	free(c->scaling);
	free(c->chunks);
	memset(c, 0, sizeof(*c));
}

double compared_number(const struct compared *c, const char *id)
{
	bool known;
	double d = value_number(metric_value(&c->facts, id), &known);

	return known ? d : (double)NAN;
}

double compared_class(const struct compared *c, int class)
{
	return compared_number(c, class == COMPARE_IDLE ? "idle_thread_seconds"
							: class_metric((unsigned int)class));
}

bool compared_unmeasured(const struct compared *c)
{
	return c->facts.all.unmeasured > 0;
}

struct value compared_waiting(const struct compared *c)
{
	return value_minus(metric_task_wall_seconds(&c->facts), metric_task_cpu_seconds(&c->facts));
}

struct value compared_overhead(const struct compared *c)
{
	return value_seconds(value_minus(sum_value(&c->facts.tasks.wall_ns),
					 sum_value(&c->facts.chunks.wall_ns)));
}

struct value compared_least_workers(const struct compared *c)
{
	const struct series *s = &c->facts.tracking->workers;
	double least = (double)NAN;
	size_t i;

	for (i = 0; i < s->n; i++)
		least = fmin(least, s->v[i].value);
	return value_real(least);
}

size_t compared_number_of(const struct comparison *all, const struct compared *c)
{
	return (size_t)(c - all->run) + 1;
}
