/* SPDX-License-Identifier: BSD-3-Clause */
/* watch_out.c - the state of the journals, in live.json and for Prometheus. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "collector/watch/watch_parts.h"
#include "common/clock.h"
#include "common/log.h"

#define MB 1000000u

enum state { READ, READING, MISSING, UNREADABLE, STATES };

static const char *const state_names[STATES] = {
	[READ] = "read",
	[READING] = "reading",
	[MISSING] = "missing",
	[UNREADABLE] = "unreadable",
};

static enum state state_of(const struct watch_journal *j)
{
	if (j->error)
		return j->error == -ENOENT ? MISSING : UNREADABLE;
	return j->read ? READ : READING;
}

static bool missed(const struct watch_journal *j)
{
	return j->tail.lost || j->missed;
}

static size_t count(const struct watch *w, enum state state)
{
	size_t i, n = 0;

	for (i = 0; i < w->n; i++)
		n += state_of(&w->journals[i]) == state;
	return n;
}

static void failed_text(const struct watch *w, size_t n, char *line, size_t size)
{
	const struct watch_journal *j = w->journals;

	while (!j->error)
		j++;
	snprintf(line, size,
		 "%zu of %zu journals cannot be read, and the sums lack what %s: '%s': %s", n, w->n,
		 n > 1 ? "they have" : "it has", j->tail.folder, log_error(j->error));
}

static void reading_text(const struct watch *w, char *line, size_t size)
{
	uint64_t done = 0, all = 0;
	size_t i;

	for (i = 0; i < w->n; i++) {
		if (state_of(&w->journals[i]) != READING)
			continue;
		done += tail_bytes(&w->journals[i].tail);
		all += w->journals[i].size_bytes;
	}
	snprintf(line, size,
		 "the sums are not complete yet: %" PRIu64 " of %" PRIu64
		 " MB of the journals are read",
		 done / MB, (all > done ? all : done) / MB);
}

/* What the sums lack; "": nothing. */
static void trouble_text(const struct watch *w, char *line, size_t size)
{
	size_t n = count(w, MISSING) + count(w, UNREADABLE), i;

	*line = '\0';
	if (n) {
		failed_text(w, n, line, size);
	} else if (count(w, READING)) {
		reading_text(w, line, size);
	} else if (w->no_memory) {
		snprintf(line, size, "out of memory: the sums are too small");
	} else if (w->left_out) {
		snprintf(line, size, "there are more than %u workers: the sums lack the others",
			 LIVE_WORKERS);
	}
	for (i = 0; i < w->n && !*line; i++) {
		const struct watch_journal *j = &w->journals[i];

		if (tail_newer(&j->tail))
			snprintf(line, size,
				 "'%s' was written by a newer crema: the sums lack what this "
				 "version does not know",
				 j->tail.folder);
		else if (missed(j))
			snprintf(line, size,
				 "segments of '%s' were dropped before this page read them: the "
				 "sums lack their records",
				 j->tail.folder);
	}
}

static void put_journal(struct json *j, const struct watch_journal *of)
{
	enum state state = state_of(of);

	emit_object(j, NULL);
	emit_value(j, "dir", value_text(of->dir));
	emit_value(j, "state", value_text(state_names[state]));
	emit_value(j, "error", value_text(of->error ? log_error(of->error) : NULL));
	emit_value(j, "quiet_seconds",
		   of->moved_ns ? value_real((double)(clock_mono_ns() - of->moved_ns) / 1e9)
				: value_null());
	emit_value(j, "bytes_read", value_uint(tail_bytes(&of->tail)));
	emit_value(j, "bytes", state == READING ? value_uint(of->size_bytes) : value_null());
	emit_value(j, "runs_dropped", value_uint(of->runs_dropped));
	emit_value(j, "segments_missed", value_bool(missed(of)));
	emit_value(j, "damaged_frames", value_uint(of->damaged));
	emit_value(j, "damaged_bytes", value_uint(tail_skipped(&of->tail)));
	emit_end(j);
}

void watch_json(void *arg, struct json *j)
{
	const struct watch *w = arg;
	char line[PATH_MAX + 256];
	size_t i;

	emit_array(j, "journals");
	for (i = 0; i < w->n; i++)
		put_journal(j, &w->journals[i]);
	emit_end(j);
	trouble_text(w, line, sizeof(line));
	emit_value(j, "journals_trouble", value_text(*line ? line : NULL));
}

void watch_metrics(const struct watch *w, struct sink *s)
{
	int i;

	sink_puts(s, "# HELP crema_journals journals of this page: read to the end, being read, "
		     "missing or unreadable; the totals lack the last three\n"
		     "# TYPE crema_journals gauge\n");
	for (i = 0; i < STATES; i++)
		sink_printf(s, "crema_journals{state=\"%s\"} %zu\n", state_names[i],
			    count(w, (enum state)i));
}
