/* SPDX-License-Identifier: BSD-3-Clause */
/* retain_run.c - choosing the runs that go, writing what is left of them, and unlinking. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/metrics/metrics.h"
#include "collector/model/dropped.h"
#include "collector/serve/retain.h"
#include "collector/serve/retain_carry.h"
#include "common/dirs.h"
#include "common/log.h"

#define NEW_FOLDER ".new"

struct choice {
	const struct retain_config *config;
	struct model *m;
	struct runs *runs;
	uint64_t now_ns, current_ns;
	bool *drop;
	const char **why;
	size_t first_kept; /* segments before this one go */
	uint64_t bytes;	   /* of all segments */
	char *over;
};

/* Choosing */

static bool is_settled(const struct choice *c, const struct run *r)
{
	double quiet = (double)(r->plain ? RETAIN_SETTLED_PLAIN_NS : RETAIN_SETTLED_NS) / 1e9;

	return !r->running && !isnan(r->stop) && r->stop + quiet < (double)c->now_ns / 1e9;
}

/* When the segment's last frame came, at the latest. */
static uint64_t segment_end_ns(const struct choice *c, size_t i)
{
	return i + 1 < c->m->segments.n ? c->m->segments.v[i + 1].created_ns : UINT64_MAX;
}

/* The oldest segment that a run needs: with its first record, or with what was sampled shortly
 * before it. */
static size_t first_needed(const struct choice *c, const struct run *r)
{
	uint64_t start_ns = r->start > 0 ? (uint64_t)(r->start * 1e9) : 0;
	size_t i, first = c->m->segments.n;

	for (i = 0; i < r->attempts.n; i++) {
		if (r->attempts.v[i]->segment < first)
			first = r->attempts.v[i]->segment;
	}
	for (i = 0; i < first; i++) {
		if (segment_end_ns(c, i) >
		    start_ns - (start_ns > RETAIN_MARGIN_NS ? RETAIN_MARGIN_NS : start_ns))
			return i;
	}
	return first;
}

static void choose_old(struct choice *c)
{
	double oldest = ((double)c->now_ns - (double)c->config->keep_ns) / 1e9;
	size_t i;

	for (i = 0; i < c->runs->n && c->config->keep_ns; i++) {
		if (is_settled(c, &c->runs->v[i]) && c->runs->v[i].stop < oldest) {
			c->drop[i] = true;
			c->why[i] = "--keep";
		}
	}
}

/* The first segment that must stay; *by: the run that needs it, if it is one. */
static size_t first_kept(const struct choice *c, const struct run **by)
{
	size_t i, need, kept = 0;

	*by = NULL;
	while (kept < c->m->segments.n && c->m->segments.v[kept].created_ns < c->current_ns)
		kept++;
	for (i = 0; i < c->runs->n; i++) {
		need = c->drop[i] ? kept : first_needed(c, &c->runs->v[i]);
		if (need < kept) {
			kept = need;
			*by = &c->runs->v[i];
		}
	}
	return kept;
}

/* The runs go one after the other until what is left is small enough. */
static void choose_large(struct choice *c)
{
	uint64_t max = c->config->max_bytes, freed = 0;
	size_t i = 0, k, kept;
	const struct run *by;
	bool newest;

	if (!max)
		return;
	for (;;) {
		kept = first_kept(c, &by);
		for (k = 0, freed = 0; k < kept && c->bytes - freed > max; k++)
			freed += c->m->segments.v[k].bytes;
		if (c->bytes - freed <= max || !by)
			break;
		i = (size_t)(by - c->runs->v);
		newest = i + 1 == c->runs->n;
		if (newest || !is_settled(c, by)) {
			snprintf(c->over, sizeof(((struct retain_result *)0)->over),
				 "the journal has %" PRIu64 " bytes, more than --max-bytes %" PRIu64
				 ": run %s %s, so it is kept whole and the journal grows on",
				 c->bytes - freed, max, by->id,
				 newest ? "is the newest" : "is in progress");
			break;
		}
		c->drop[i] = true;
		c->why[i] = "--max-bytes";
	}
	c->first_kept = k;
}

/* Of the segments that nobody needs those go that hold dropped runs, are too old or too many. */
static void choose_segments(struct choice *c)
{
	const struct run *by;
	size_t i, k, kept = first_kept(c, &by);
	uint64_t oldest = c->now_ns - c->config->keep_ns;

	for (i = 0; i < c->runs->n; i++) {
		struct attempts *a = &c->runs->v[i].attempts;

		for (k = 0; k < a->n && c->drop[i]; k++) {
			if (a->v[k]->segment < kept && a->v[k]->segment >= c->first_kept)
				c->first_kept = a->v[k]->segment + 1u;
		}
	}
	while (c->config->keep_ns && c->first_kept < kept &&
	       segment_end_ns(c, c->first_kept) < oldest)
		c->first_kept++;
}

/* Writing */

static int add_row(struct choice *c, const struct run *r, const char *why)
{
	struct dropped_run *d = arena_get(&c->m->arena, sizeof(*d)), **at;
	struct dropped_value *v;
	struct facts facts;
	const char **span;
	size_t i, j;
	int rc;

	at = d ? ARRAY_NEW(&c->m->dropped) : NULL;
	if (!at)
		return -ENOMEM;
	*at = d;
	d->id = r->id;
	d->kind = run_kind_name(r);
	d->why = why;
	d->plain = r->plain;
	d->start_ns = r->start > 0 ? (uint64_t)(r->start * 1e9) : 0;
	d->stop_ns = r->stop > 0 ? (uint64_t)(r->stop * 1e9) : 0;
	d->dropped_ns = c->now_ns;
	for (i = 0; i < r->attempts.n; i++) {
		const char *name = r->attempts.v[i]->span;

		for (j = 0; j < d->spans.n && d->spans.v[j] != name; j++)
			;
		if (!name || j < d->spans.n)
			continue;
		span = ARRAY_NEW(&d->spans);
		if (!span)
			return -ENOMEM;
		*span = name;
	}
	rc = facts_build(&facts, r);
	for (i = 0; i < metric_count && !rc; i++) {
		if (metric_table[i].kind == METRIC_TREE)
			continue;
		v = ARRAY_NEW(&d->values);
		if (!v) {
			rc = -ENOMEM;
			break;
		}
		v->id = metric_table[i].id;
		v->v = metric_table[i].num(&facts);
		if (v->v.type == VALUE_TEXT) /* some are in the facts */
			v->v.v.s = model_text(c->m, (struct text){v->v.v.s, strlen(v->v.v.s)});
	}
	facts_release(&facts);
	return rc ? rc : c->m->error;
}

static int sync_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	rc = fsync(fd) ? -errno : 0;
	close(fd);
	return rc;
}

/* The whole file beside the journal, synced, then its name in one step. */
static int replace_file(const char *dir, const struct buf *head, const struct buf *rest)
{
	char folder[PATH_MAX], path[PATH_MAX], stale[PATH_MAX], name[FRAMEFILE_NAME_BYTES];
	struct framefile file;
	int rc = dirs_join(folder, sizeof(folder), dir, NEW_FOLDER);

	if (!rc)
		rc = dirs_join(path, sizeof(path), dir, DROPPED_FILE);
	if (!rc)
		rc = dirs_make(folder);
	if (!rc)
		rc = dirs_join(stale, sizeof(stale), folder, framefile_name(name, 0, NULL));
	if (rc)
		return rc;
	unlink(stale);
	rc = framefile_create(&file, folder, "dropped", 0, NULL);
	if (rc)
		return rc;
	rc = framefile_append(&file, head->data, head->len);
	if (!rc)
		rc = framefile_append(&file, rest->data, rest->len);
	if (!rc && fsync(file.fd))
		rc = -errno;
	if (!rc && rename(file.path, path))
		rc = -errno;
	if (rc)
		unlink(file.path);
	framefile_close(&file);
	rmdir(folder);
	return rc ? rc : sync_folder(dir);
}

static int write_file(const struct choice *c, uint64_t below_ns)
{
	struct buf head = BUF_INIT, rest = BUF_INIT;
	struct carry *carry = NULL;
	size_t i;
	int rc = carry_read(&carry, c->config->journal_dir, below_ns);

	for (i = 0; i < c->m->dropped.n && !rc; i++)
		rc = dropped_pack(c->m->dropped.v[i], &rest);
	if (!rc)
		rc = carry_write(carry, c->m, c->first_kept, below_ns, &head, &rest);
	if (!rc)
		rc = replace_file(c->config->journal_dir, &head, &rest);
	carry_free(carry);
	buf_release(&head);
	buf_release(&rest);
	return rc;
}

/* All segments before, those that a killed child has left, too. */
static int unlink_below(const char *dir, uint64_t below_ns, struct retain_result *result)
{
	char **names = NULL, path[PATH_MAX];
	int i, n = framefile_list(dir, &names);
	struct stat st;

	result->bytes = 0;
	for (i = 0; i < n; i++) {
		if (dirs_join(path, sizeof(path), dir, names[i]) || stat(path, &st))
			continue;
		if (strcmp(names[i], DROPPED_FILE) != 0 &&
		    strtoull(names[i], NULL, 10) < below_ns && !unlink(path)) {
			result->unlinked++;
			result->unlinked_bytes += (uint64_t)st.st_size;
		} else {
			result->bytes += (uint64_t)st.st_size;
		}
	}
	free(names);
	return n < 0 ? n : 0;
}

static int drop(struct choice *c, struct retain_result *result)
{
	uint64_t below_ns = c->m->below_ns;
	size_t i;
	int rc = 0;

	for (i = 0; i < c->runs->n && !rc; i++) {
		if (!c->drop[i])
			continue;
		rc = add_row(c, &c->runs->v[i], c->why[i]);
		result->dropped++;
	}
	if (c->first_kept)
		below_ns = c->m->segments.v[c->first_kept - 1].created_ns + 1;
	if (!rc && (result->dropped || c->first_kept))
		rc = write_file(c, below_ns);
	return rc ? rc : unlink_below(c->config->journal_dir, below_ns, result);
}

int retain_run(const struct retain_config *config, uint64_t current_ns, uint64_t now_ns,
	       struct retain_result *result)
{
	struct choice c = {
		.config = config, .now_ns = now_ns, .current_ns = current_ns, .over = result->over};
	struct model m;
	struct runs runs = {0};
	size_t i;
	int rc;

	memset(result, 0, sizeof(*result));
	model_init(&m);
	c.m = &m;
	c.runs = &runs;
	rc = model_read_dir(&m, config->dir);
	if (rc >= 0)
		rc = model_close(&m, now_ns);
	if (!rc)
		rc = runs_build(&runs, &m);
	c.drop = calloc(runs.n + 1, sizeof(*c.drop));
	c.why = calloc(runs.n + 1, sizeof(*c.why));
	if (!rc && (!c.drop || !c.why))
		rc = -ENOMEM;
	if (!rc) {
		result->dropped_before = m.dropped.n;
		for (i = 0; i < m.segments.n; i++)
			c.bytes += m.segments.v[i].bytes;
		choose_old(&c);
		choose_large(&c);
		choose_segments(&c);
		rc = drop(&c, result);
	}
	free(c.drop);
	free(c.why);
	runs_release(&runs);
	model_release(&m);
	return rc;
}
