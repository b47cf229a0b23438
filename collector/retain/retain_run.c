/* SPDX-License-Identifier: BSD-3-Clause */
/* retain_run.c - surveys the journal, writes the remains of dropped runs, and unlinks segments. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/retain/retain_carry.h"
#include "collector/retain/retain_choose.h"
#include "collector/retain/totals.h"
#include "common/clock.h"
#include "common/dirs.h"
#include "common/log.h"

#define NEW_FOLDER ".new"
/* After this time, runs that still need reading stay until next time: the child may take JOB_MS. */
#define LATE_NS (UINT64_C(600) * 1000000000u)
#define WHOLE_BYTES (UINT64_C(32) << 20) /* not urgent: little memory matters more */

/* Totals */

static int push(struct choice *c, struct dropped_run *d, const char *why)
{
	struct dropped_run **at = ARRAY_NEW(&c->m.dropped);

	if (!at)
		return -ENOMEM;
	d->why = why;
	d->dropped_ns = c->now_ns;
	*at = d;
	return 0;
}

/* Takes a run without spans to itself, which is read once more; otherwise it stays. */
static int take(void *arg, const struct run *r, size_t place)
{
	struct choice *c = arg;
	struct dropped_run *d = r ? arena_get(&c->m.arena, sizeof(*d)) : NULL;
	const char *why = c->run[place].why;
	int rc;

	if (!r) {
		c->run[place].why = NULL;
		return 0;
	}
	rc = d ? push(c, d, why) : -ENOMEM;
	return rc ? rc : totals_make(&c->m, r, d, why);
}

static int add_rows(struct choice *c, const struct runs_source *source)
{
	size_t *places = calloc(c->runs.n + 1, sizeof(*places)), i, n = 0;
	int rc = places ? 0 : -ENOMEM;

	for (i = 0; i < c->runs.n && !rc; i++) {
		if (!c->run[i].why)
			continue;
		if (c->runs.v[i].totals)
			rc = push(c, run_totals_take(&c->m, c->runs.v[i].totals), c->run[i].why);
		else
			places[n++] = i;
	}
	if (!rc)
		rc = totals_read(source, &c->runs, places, n, LATE_NS, take, c);
	free(places);
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

/* Writes the whole file next to the journal and syncs it, then renames it in one step. */
static int replace_file(const char *dir, const struct buf *frames)
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
	rc = framefile_append(&file, frames->data, frames->len);
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

static int pack_head(uint64_t below_ns, uint64_t now_ns, struct buf *out)
{
	struct crema_frame_header head = frame_head(CREMA_FRAME_DROPPED, NULL, 0);
	struct packed_map map;
	msgpack_packer *pk = packed_map_begin(&map);

	pack_kv_u64(pk, "below_ns", below_ns);
	pack_kv_u64(pk, "dropped_ns", now_ns);
	return frame_encode_buf(out, &head, packed_map_end(&map));
}

/* The checkpoint comes first (common/items.h). */
static int write_file(struct choice *c, uint64_t below_ns)
{
	const struct retain_config *config = c->config;
	struct buf out = BUF_INIT;
	size_t i;
	int rc = config->state ? config->state(config->state_arg, &out) : 0;

	if (rc >= 0)
		rc = pack_head(below_ns, c->now_ns, &out);
	for (i = 0; i < c->m.dropped.n && !rc; i++)
		rc = dropped_pack(c->m.dropped.v[i], CREMA_FRAME_DROPPED_RUN, &out);
	if (!rc)
		rc = carry_pack(config, &c->m, c->first_kept, &out);
	if (!rc)
		rc = replace_file(config->journal_dir, &out);
	buf_release(&out);
	return rc;
}

/* All segments before that, including those that a killed child has left. */
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
		    framefile_created_ns(names[i]) < below_ns && !unlink(path)) {
			result->unlinked++;
			result->unlinked_bytes += (uint64_t)st.st_size;
		} else {
			result->bytes += (uint64_t)st.st_size;
		}
	}
	free(names);
	return n < 0 ? n : 0;
}

static int drop(struct choice *c, const struct runs_source *source, struct retain_result *result)
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
	struct runs_source source = {.dir = config->dir,
				     .now_ns = now_ns,
				     .whole_bytes = config->whole_bytes ? config->whole_bytes
									: WHOLE_BYTES};
	int rc;

	memset(result, 0, sizeof(*result));
	model_init(&c.m);
	rc = totals_update(&source, LATE_NS);
	source.survey_only = true;
	if (rc >= 0)
		rc = runs_read_each(&c.m, &c.runs, &source, choice_see, &c);
	if (rc >= 0) {
		result->dropped_before = c.m.dropped.n;
		choose_runs(&c);
		rc = drop(&c, &source, result);
	}
	choice_release(&c);
	return rc;
}
