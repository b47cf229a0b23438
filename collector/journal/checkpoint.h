/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checkpoint.h - the collector's state at the head of a journal segment, so that a start only reads
 * the segments from there on.
 *
 * A checkpoint is a list of items (common/items.h) in CHECKPOINT frames. It covers at least the
 * earlier segments: later frames that it already includes are recognized by their streams'
 * positions. So the file of dropped runs (model/dropped.h) can begin with one, too. Reports do not
 * read it.
 *
 * CHECKPOINT_HEAD comes first: a reader that finds another format there has no checkpoint, and
 * reads the journal instead. Other versions may have other live values: their names come before
 * them, and each list has that many values. Other lists, and items, may only grow at their end.
 */
#ifndef CREMA_COLLECTOR_JOURNAL_CHECKPOINT_H
#define CREMA_COLLECTOR_JOURNAL_CHECKPOINT_H

#include "common/items.h"

#define CHECKPOINT_FORMAT 2u

enum checkpoint_item {
	CHECKPOINT_HEAD,   /* format, 1: with live numbers */
	CHECKPOINT_STREAM, /* worker, stream, number of the next record; number up to which live
			      numbers include them */
	CHECKPOINT_NAMES,  /* of live values: [part, key, part, key, ...] */
	CHECKPOINT_SUMS,   /* see live.h, as for the others */
	CHECKPOINT_WORKER,
	CHECKPOINT_FOLDED,
};

#endif
