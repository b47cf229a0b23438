/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checkpoint.h - the collector's state at the head of a journal segment, so that a start reads the
 * segments from there on and none before.
 *
 * A checkpoint is a list of items (common/items.h) in CHECKPOINT frames. It covers what was
 * journaled in earlier segments, at least: frames that follow and are in it already are recognised
 * by their streams' positions. Reports do not read it.
 *
 * Items of the first kind must come first: who reads another format or other tables of counters has
 * no checkpoint, and reads the journal instead.
 */
#ifndef CREMA_COLLECTOR_JOURNAL_CHECKPOINT_H
#define CREMA_COLLECTOR_JOURNAL_CHECKPOINT_H

#include "common/items.h"

#define CHECKPOINT_FORMAT 1u

enum checkpoint_item {
	CHECKPOINT_TABLES, /* format, hash of the names of live values (0: no live numbers) */
	CHECKPOINT_STREAM, /* worker, stream, the next record's number */
	CHECKPOINT_SUMS,   /* live.h, as the others */
	CHECKPOINT_WORKER,
	CHECKPOINT_FOLDED,
};

#endif
