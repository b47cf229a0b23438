/* SPDX-License-Identifier: BSD-3-Clause */
/* journal_scan.c - reading what earlier collectors wrote. */
#include "collector/serve/journal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/model/dropped.h"
#include "common/dirs.h"
#include "common/log.h"
#include "common/pack.h"

/* A text for people about what is wrong with a segment; 0: nothing. */
static int damage(const struct framefile_stats *stats, const char *name, char *text, size_t size)
{
	if (stats->newer)
		return snprintf(
			text, size,
			"'%s' was written by a newer crema: what this one does not know is not "
			"used",
			name);
	if (stats->no_header)
		return snprintf(text, size,
				"'%s' is no journal segment; its %" PRIu64 " valid frames are used",
				name, stats->frames);
	if (stats->truncated)
		return snprintf(text, size,
				"'%s' ends in half a frame (%" PRIu64 " bytes are not used)", name,
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

struct visitor {
	void (*visit)(void *arg, const struct frame *frame);
	void *arg;
	uint64_t below_ns;
};

/* Frames of the file of dropped runs: which segments are gone is for us, too. */
static void visit_dropped(void *arg, const struct frame *frame)
{
	struct visitor *v = arg;
	struct buf scratch = BUF_INIT;
	const unsigned char *raw;
	struct unpack map;

	if (frame->head.type == CREMA_FRAME_DROPPED && !frame_payload(frame, &scratch, &raw) &&
	    !unpack_open(&map, raw, frame->head.raw_bytes)) {
		v->below_ns = get_u64(&map.root, "below_ns", 0);
		unpack_release(&map);
	}
	buf_release(&scratch);
	v->visit(v->arg, frame);
}

int journal_scan_before(const char *dir, uint64_t before_ns,
			void (*visit)(void *arg, const struct frame *frame), void *arg,
			void (*warn)(void *arg, const char *text))
{
	struct visitor v = {visit, arg, 0};
	char **names = NULL, text[512];
	int i, n = framefile_list(dir, &names);
	uint64_t created_ns;

	for (i = 0; i < n; i++) {
		/* the first name that there can be */
		bool dropped = !strcmp(names[i], DROPPED_FILE);

		created_ns = strtoull(names[i], NULL, 10);
		if (!dropped && (created_ns < v.below_ns || created_ns >= before_ns))
			continue;
		if (scan_one(dir, names[i], dropped ? visit_dropped : visit, dropped ? &v : arg,
			     text, sizeof(text)) &&
		    warn)
			warn(arg, text);
	}
	free(names);
	return n < 0 ? n : 0;
}

int journal_scan(const char *dir, void (*visit)(void *arg, const struct frame *frame), void *arg,
		 void (*warn)(void *arg, const char *text))
{
	return journal_scan_before(dir, UINT64_MAX, visit, arg, warn);
}
