/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checkpoint.h - the collector's state at the head of a journal segment, so that a start reads the
 * segments from there on and none before.
 *
 * A checkpoint is a list of items (common/items.h) in CHECKPOINT frames. It covers what was
 * journaled in earlier segments, at least: frames that follow and are in it already are recognised
 * by their streams' positions. So the file of dropped runs (model/dropped.h) begins with one, too.
 * Reports do not read it.
 *
 * The item of the first kind comes first: who finds another format there has no checkpoint, and
 * reads the journal instead. Another version may have other live values: their names come before
 * them, and each list has that many values. Other lists, and items, may only grow at their end.
 */
#ifndef CREMA_COLLECTOR_JOURNAL_CHECKPOINT_H
#define CREMA_COLLECTOR_JOURNAL_CHECKPOINT_H

#include "common/items.h"

#define CHECKPOINT_FORMAT 2u

enum checkpoint_item {
	CHECKPOINT_HEAD,   /* format, 1: with live numbers */
	CHECKPOINT_STREAM, /* worker, stream, the next record's number; up to which one live numbers
			      have counted them */
	CHECKPOINT_NAMES,  /* of live values: [part, key, part, key, ...] */
	CHECKPOINT_SUMS,   /* live.h, as the others */
	CHECKPOINT_WORKER,
	CHECKPOINT_FOLDED,
};

#endif
