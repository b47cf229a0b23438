/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * footer.h - a summary of one journal segment, kept next to it, so that a report opens only the
 * segments that hold its run's data and skips all others.
 *
 * DIR/footers/NAME is the footer of the segment DIR/journal/NAME: a frame file of items
 * (common/items.h), made only from the segment's bytes once it takes no more frames. A footer is
 * valid if it is complete and holds the segment's creation time, its size and a hash of its last 4
 * KiB. Otherwise the segment is read. A segment that was damaged when its footer was made is always
 * read. Later damage before the last 4 KiB is detected when the segment is opened.
 *
 * Contents:
 * - the hellos;
 * - per worker: its first and last message, streams and attempts;
 * - per span: how many records it has, its keys (span_part.h) and when each worker's last task
 *   ended;
 * - unchanged: the records that a survey keeps (selection.h), clocks, goodbyes, modules, and the
 *   first, the last and the latest totals and the last digests of each worker.
 *
 * Segments with tasks that have no span, or ran without Dask, are always read: such tasks are
 * grouped by all of their records.
 *
 * Of a segment with data of its runs, a report reads only the blocks that the footer's index
 * (footer_blocks.h) selects. Footers of earlier versions have no index.
 */
#ifndef CREMA_COLLECTOR_MODEL_FOOTER_H
#define CREMA_COLLECTOR_MODEL_FOOTER_H

#include "collector/model/selection.h"
#include "common/items.h"

#define FOOTER_FORMAT 2u
#define FOOTER_FOLDER "footers"
#define FOOTER_TAIL_BYTES 4096u

enum footer_item {
	FOOTER_SEGMENT, /* format, created_ns, bytes, hash of the tail, true: read the segment,
			   note_ns, frames, whether it has blocks (missing in earlier versions) */
	FOOTER_WORKER,	/* id, first and last message, first and last sample (boot ns, 0: unknown),
			   then lists of ranges [from, to, ...]: attempts whose span is known, those
			   that are kept, streams, long waits */
	FOOTER_HELLO,	/* worker, stream, payload */
	FOOTER_SPAN, /* name, prefix or nil, several, users, records that begin and end tasks, keys,
			consumed, [number of the worker, last end in boot ns, ...], number of rows
			(missing in earlier versions) */
	FOOTER_SURVEY,	/* worker, stream, message: also for a survey */
	FOOTER_MESSAGE, /* the same, only for a report */
	FOOTER_BLOCK,	/* footer_blocks.h; after the first totals, so that messages are fed as they
			   came, as far as their order matters */
};

/* Writes the footer of a segment that takes no more frames: 0 or -errno. */
int footer_write(const char *journal, const char *folder, const char *name);
/* Whether it has a valid footer. */
bool footer_is_good(const char *journal, const char *folder, const char *name);
/* Passes its items on as items_read() does: 1. 0: no valid footer, or it requires reading the
 * segment. Below 0: the error that stopped it. */
int footer_each(const char *journal, const char *folder, const char *name,
		int (*take)(void *arg, const msgpack_object_array *item), void *arg);

/*
 * Part of model_read_dir(): feeds the last segment passed to selection_file(), from its footer,
 * and with the blocks that the second pass needs. 1: done; 0: read the segment; -ENOMEM; -ESTALE:
 * the footer is invalid after all, and so is the model.
 */
int footer_feed(struct model *m, const char *folder, const char *segment, const char *name);

/* Part of both. */
struct footer_id {
	uint64_t created_ns, bytes, tail_hash;
};
int footer_identify(const char *segment, const char *name, struct footer_id *id);

#endif
