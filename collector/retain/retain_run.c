/* SPDX-License-Identifier: BSD-3-Clause */
/* retain_run.c - reading the journal, writing what is left of the runs that go, and unlinking. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/metrics/metrics.h"
#include "collector/model/dropped.h"
#include "collector/retain/retain_carry.h"
#include "collector/retain/retain_choose.h"
#include "common/clock.h"
#include "common/dirs.h"
#include "common/log.h"

#define NEW_FOLDER ".new"
#define WHOLE_BYTES (UINT64_C(32) << 20) /* nobody waits: little memory matters more */
/* Then runs that have still to be read stay until the next time: the child may take JOB_MS. */
#define LATE_NS (UINT64_C(600) * 1000000000u)

/* Totals */

static int add_span(struct dropped_run *d, const char *name)
{
	const char **span;
	size_t i;

	for (i = 0; i < d->spans.n; i++) {
		if (d->spans.v[i] == name)
			return 0;
	}
	span = ARRAY_NEW(&d->spans);
	if (!span)
		return -ENOMEM;
	*span = name;
	return 0;
}

static const char *intern(struct model *m, const char *text)
{
	return model_text(m, (struct text){text, strlen(text)});
}

static int add_values(struct model *m, struct dropped_run *d, const struct run *r)
{
	struct dropped_value *v;
	struct facts facts;
	size_t i;
	int rc = facts_build(&facts, r);

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
			v->v.v.s = intern(m, v->v.v.s);
	}
	facts_release(&facts);
	return rc;
}

/* The run is in a model of its own, which goes. */
static int add_row(struct choice *c, const struct run *r, const char *why)
{
	struct dropped_run *d = arena_get(&c->m.arena, sizeof(*d)), **at;
	size_t i;
	int rc = 0;

	at = d ? ARRAY_NEW(&c->m.dropped) : NULL;
	if (!at)
		return -ENOMEM;
	*at = d;
	d->id = intern(&c->m, r->id);
	d->kind = run_kind_name(r);
	d->why = why;
	d->plain = r->plain;
	d->start_ns = r->start > 0 ? (uint64_t)(r->start * 1e9) : 0;
	d->stop_ns = r->stop > 0 ? (uint64_t)(r->stop * 1e9) : 0;
	d->dropped_ns = c->now_ns;
	for (i = 0; i < r->attempts.n && !rc; i++) {
		if (r->attempts.v[i]->span)
			rc = add_span(d, intern(&c->m, r->attempts.v[i]->span));
	}
	if (!rc)
		rc = add_values(&c->m, d, r);
	return rc ? rc : c->m.error;
}

/* Some runs, each read in full. */
static int add_batch(struct choice *c, const struct selection_source *source, const size_t *at,
		     size_t n)
{
	const struct run **seen = calloc(n, sizeof(*seen));
	struct run **found = calloc(n, sizeof(*found));
	struct runs runs = {0};
	struct model m;
	size_t i;
	int rc = seen && found ? 0 : -ENOMEM;

	model_init(&m);
	for (i = 0; i < n && !rc; i++)
		seen[i] = &c->runs.v[at[i]];
	if (!rc)
		rc = model_read_again(&m, &runs, source, seen, found, n);
	for (i = 0; i < n && rc >= 0; i++)
		rc = add_row(c, found[i], c->run[at[i]].why);
	runs_release(&runs);
	model_release(&m);
	free(seen);
	free(found);
	return rc < 0 ? rc : 0;
}

/* In batches that have room in so many bytes, or of one run. */
static int add_rows(struct choice *c, const struct selection_source *source)
{
	size_t *at = calloc(c->runs.n + 1, sizeof(*at)), i, n = 0, from, to;
	uint64_t began_ns = clock_boot_ns(), bytes;
	int rc = at ? 0 : -ENOMEM;

	for (i = 0; i < c->runs.n && !rc; i++) {
		if (c->run[i].why)
			at[n++] = i;
	}
	for (from = 0; from < n && !rc; from = to) {
		bytes = 0;
		for (to = from; to < n && (to == from || bytes < source->whole_bytes); to++)
			bytes += c->run[at[to]].bytes;
		to -= to > from + 1 && bytes > source->whole_bytes;
		if (from && clock_boot_ns() - began_ns > LATE_NS)
			break;
		rc = add_batch(c, source, at + from, to - from);
	}
	for (i = from; i < n && !rc; i++)
		c->run[at[i]].why = NULL;
	free(at);
	return rc;
}

/* Writing */

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
		rc = dirs_make_own(folder);
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

static int write_file(struct choice *c, uint64_t below_ns)
{
	struct buf head = BUF_INIT, rest = BUF_INIT;
	struct carry *carry = NULL;
	size_t i;
	int rc = carry_read(&carry, c->config->journal_dir, below_ns);

	for (i = 0; i < c->m.dropped.n && !rc; i++)
		rc = dropped_pack(c->m.dropped.v[i], &rest);
	if (!rc)
		rc = carry_write(carry, &c->m, c->first_kept, below_ns, &head, &rest);
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

static int drop(struct choice *c, const struct selection_source *source,
		struct retain_result *result)
{
	uint64_t below_ns = c->m.below_ns;
	int rc = add_rows(c, source);

	if (rc)
		return rc;
	result->dropped = c->m.dropped.n - result->dropped_before;
	choose_segments(c);
	if (c->first_kept)
		below_ns = c->m.segments.v[c->first_kept - 1].created_ns + 1;
	if (result->dropped || c->first_kept)
		rc = write_file(c, below_ns);
	return rc ? rc : unlink_below(c->config->journal_dir, below_ns, result);
}

int retain_run(const struct retain_config *config, uint64_t current_ns, uint64_t now_ns,
	       struct retain_result *result)
{
	struct choice c = {
		.config = config, .now_ns = now_ns, .current_ns = current_ns, .over = result->over};
	struct selection_source source = {config->dir, now_ns,
					  config->whole_bytes ? config->whole_bytes : WHOLE_BYTES};
	int rc;

	memset(result, 0, sizeof(*result));
	model_init(&c.m);
	rc = model_read_each(&c.m, &c.runs, &source, choice_see, &c);
	if (rc >= 0) {
		result->dropped_before = c.m.dropped.n;
		choose_runs(&c);
		rc = drop(&c, &source, result);
	}
	choice_release(&c);
	return rc;
}
