/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target.h - a file that a report is written to, through a sink.
 *
 *	target_init(&t, path);  ... sink_puts(&t.sink, text) ...;  rc = target_close(&t, why);
 *
 * "-" is standard output. The file is opened with the first text that leaves the buffer, so a
 *report that fails before it leaves no file. Whoever reads the other end of a pipe and has seen
 *enough is no error. target_close() gives everything back, also after an error.
 */
#ifndef COLLECTOR_EXPORT_TARGET_H
#define COLLECTOR_EXPORT_TARGET_H

#include "collector/emit/emit.h"

struct target {
	const char *path;
	int fd; /* -1: not open yet */
	struct buf buf;
	struct sink sink;
};

void target_init(struct target *t, const char *path);
/* 0, or the first -errno with one line in `why`. */
int target_close(struct target *t, struct buf *why);
/* Gives up what was not written yet. */
void target_drop(struct target *t);

#endif
