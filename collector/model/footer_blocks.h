/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * footer_blocks.h - the index in a footer: which parts of its segment a report of some runs reads.
 *
 * A segment is divided into blocks of whole frames, about FOOTER_BLOCK_BYTES each. The footer has
 * an item for each block: where it ends, its number of frames, the spans that its records and rows
 * name, and for each worker the time range of its samples, totals and probes. A report reads
 *
 * - blocks with a span of its runs, or with times around them;
 * - for each worker the blocks with its last totals before such times and its first ones after
 * them: selection_history() keeps these points;
 * - blocks with data that neither a span nor a time selects and the rest of the footer lacks.
 *
 * The rest of the footer stands for all other blocks, as it does for a segment that is not opened,
 * and for the tasks in blocks without such spans.
 * An index is used only if its blocks cover the segment, each block read has its number of frames,
 * and the blocks read have as many records and rows of the runs' spans as the footer counts.
 */
#ifndef CREMA_COLLECTOR_MODEL_FOOTER_BLOCKS_H
#define CREMA_COLLECTOR_MODEL_FOOTER_BLOCKS_H

#include "collector/model/selection.h"
#include "common/items.h"

#define FOOTER_BLOCK_BYTES (1u << 20)

/* Making */

/* What a block has of one worker's times. */
struct block_times {
	size_t worker, before; /* index of the worker; of its previous ones, plus 1 */
	uint64_t from_boot_ns, to_boot_ns;
	bool timeless, totals; /* one of them has no time; some are totals */
};

struct block_made {
	uint64_t end, frames; /* offset in the file */
	bool always;	      /* read by each report that reads some of the segment */
	size_t spans, times;  /* how many the blocks up to this one have */
};

struct block_maker {
	ARRAY(struct block_made) blocks;
	struct texts spans;
	ARRAY(struct block_times) times;
	ARRAY(size_t) latest;  /* by the worker's index: of its latest times, plus 1 */
	struct table in_block; /* spans of the current block */
	const char *recent;    /* the latest of them */
};

/* The block of the frame that is being read. NULL: out of memory. */
struct block_made *blocks_current(struct block_maker *b);
/* These add to the current block: 0 or -ENOMEM. `span` is interned. */
int blocks_add_span(struct block_maker *b, const char *span);
int blocks_add_time(struct block_maker *b, size_t worker, uint64_t boot_ns, bool totals);
/* Marks the block with that index plus 1; 0: none. */
void blocks_always(struct block_maker *b, size_t block);
/* Its latest frame ends there. */
int blocks_add_frame(struct block_maker *b, uint64_t end);
/* 0: one block, so an index is of no use. */
size_t blocks_count(const struct block_maker *b);
void blocks_write(const struct block_maker *b, struct items *items, unsigned int kind);
void blocks_release(struct block_maker *b);

/* Reading */

struct block {
	uint64_t from, to, frames;
	bool wanted, tasks; /* tasks: it has a span of the runs */
};

struct blocks_of_worker {
	size_t totals;	  /* the block of its latest totals, plus 1 */
	bool next_totals; /* the block of the next ones is wanted */
};

struct blocks {
	ARRAY(struct block) v;
	ARRAY(struct blocks_of_worker) workers; /* by their numbers */
};

/* Takes the next block's item; `workers` are the footer's. 0, -EBADMSG or -ENOMEM. */
int blocks_take(struct blocks *b, const struct model *m, struct worker *const *workers, size_t n,
		const msgpack_object_array *item);
/* Feeds the wanted blocks of a segment of that many bytes and frames: 0 or -errno. */
int blocks_feed(const struct blocks *b, struct model *m, const char *segment, uint64_t bytes,
		uint64_t frames);
void blocks_free(struct blocks *b);

#endif
