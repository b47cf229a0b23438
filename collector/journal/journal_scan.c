/* SPDX-License-Identifier: BSD-3-Clause */
/* journal_scan.c - reads what earlier collectors wrote. */
#include "collector/journal/journal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "collector/model/dropped.h"
#include "common/dirs.h"
#include "common/log.h"
#include "common/pack.h"

/* A message about what is wrong with a segment; 0: nothing. */
static int damage(const struct framefile_stats *stats, const char *name, char *text, size_t size)
{
	if (stats->newer)
		return snprintf(text, size,
				"'%s' was written by a newer crema: what this version does not "
				"know is not used",
				name);
	if (stats->no_header)
		return snprintf(text, size,
				"'%s' is not a journal segment; its %" PRIu64
				" valid frames are used",
				name, stats->frames);
	if (stats->truncated)
		return snprintf(text, size,
				"'%s' ends inside a frame (%" PRIu64 " bytes are not used)", name,
				stats->bytes_skipped);
	if (stats->bytes_skipped)
		return snprintf(text, size,
				"'%s' is damaged at byte %" PRId64 " (%" PRIu64
				" bytes are not used)",
				name, stats->first_bad_offset, stats->bytes_skipped);
	return 0;
}

static int scan_one(const char *dir, const char *name,
		    void (*visit)(void *arg, const struct frame *frame), void *arg, char *text,
		    size_t size)
{
	struct framefile_reader reader;
	struct frame frame;
	char path[PATH_MAX];
	int err = dirs_join(path, sizeof(path), dir, name);

	if (!err)
		err = framefile_open(&reader, path);
	if (err)
		return snprintf(text, size, "cannot open '%s': %s", name, log_error(err));
	while ((err = framefile_next(&reader, &frame)) > 0)
		visit(arg, &frame);
	if (err)
		err = snprintf(text, size, "cannot read '%s': %s", name, log_error(err));
	else
		err = damage(&reader.stats, name, text, size);
	framefile_reader_close(&reader);
	return err;
}

/* Segments created before that are gone (model/dropped.h), or about to be removed. */
static uint64_t gone_below(const char *dir)
{
	struct framefile_reader reader;
	struct buf scratch = BUF_INIT;
	uint64_t below_ns = 0;
	struct frame frame;
	struct unpack map;
	char path[PATH_MAX];

	if (dirs_join(path, sizeof(path), dir, DROPPED_FILE) || framefile_open(&reader, path))
		return 0;
	while (!below_ns && framefile_next(&reader, &frame) > 0) {
		if (frame.head.type != CREMA_FRAME_DROPPED || unpack_frame(&map, &frame, &scratch))
			continue;
		below_ns = get_u64(&map.root, "below_ns", 0);
		unpack_release(&map);
	}
	framefile_reader_close(&reader);
	buf_release(&scratch);
	return below_ns;
}

int journal_scan_from(const char *dir, uint64_t from_ns,
		      void (*visit)(void *arg, const struct frame *frame), void *arg,
		      void (*warn)(void *arg, const char *text))
{
	uint64_t below_ns = gone_below(dir);
	char **names = NULL, text[512];
	int i, n = framefile_list(dir, &names);

	if (below_ns < from_ns)
		below_ns = from_ns;
	for (i = 0; i < n; i++) {
		/* the first possible name */
		if (!strcmp(names[i], DROPPED_FILE) ? from_ns != 0
						    : framefile_created_ns(names[i]) < below_ns)
			continue;
		if (scan_one(dir, names[i], visit, arg, text, sizeof(text)) && warn)
			warn(arg, text);
	}
	free(names);
	return n < 0 ? n : 0;
}

uint64_t journal_bytes_from(const char *dir, uint64_t from_ns)
{
	char **names = NULL, path[PATH_MAX];
	int i, n = framefile_list(dir, &names);
	uint64_t bytes = 0;
	struct stat st;

	for (i = 0; i < n; i++) {
		if (framefile_created_ns(names[i]) >= from_ns &&
		    !dirs_join(path, sizeof(path), dir, names[i]) && !stat(path, &st))
			bytes += (uint64_t)st.st_size;
	}
	free(names);
	return bytes;
}

int journal_find(const char *dir, int (*try)(void *arg, const char *path, uint64_t created_ns),
		 void *arg)
{
	uint64_t created_ns, below_ns = gone_below(dir);
	char **names = NULL, path[PATH_MAX];
	int n = framefile_list(dir, &names), rc = n < 0 ? n : 1;

	while (rc == 1 && n-- > 0) {
		/* The minimum that was dropped: all remaining segments are newer. */
		created_ns =
			strcmp(names[n], DROPPED_FILE) ? framefile_created_ns(names[n]) : below_ns;
		if (created_ns && created_ns >= below_ns &&
		    !dirs_join(path, sizeof(path), dir, names[n]))
			rc = try(arg, path, created_ns);
	}
	free(names);
	return rc;
}
