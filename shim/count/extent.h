/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * extent.h - which bytes of data files were read, to detect what was read twice.
 *
 * A thread joins consecutive reads, keeps a few finished extents in its block and puts them into
 * the ring crema_shm->extent, which the agent empties. An extent is left out if it finds no room or
 * if its offset in the file is unknown: the agent then misses bytes that the file's row has, and
 * the file's re-reads are unknown. So nothing here can make a number wrong, only unknown.
 *
 * Where read() reads: one word per descriptor follows its position, from open() and lseek() on; for
 * a descriptor that was made another way the kernel is queried once. Descriptors that share a
 * position (dup) are not followed. A change of position by another process is not seen.
 */
#ifndef CREMA_SHIM_COUNT_EXTENT_H
#define CREMA_SHIM_COUNT_EXTENT_H

#include "shim/count/thread.h"

#define EXTENT_HERE (-1) /* at the descriptor's position */

/* Puts all extents of this thread's file row into the ring, including the current one. */
void extent_flush(struct crema_thread *t);
/* Bytes of a basket that uproot used. */
void extent_basket(uint32_t row, uint64_t offset, uint64_t bytes);

/* fd is at `offset` now. */
void position_set(int fd, uint64_t offset);
/* fd has moved in a way that we do not follow, or is another one now: the kernel is queried at the
 * next read. */
void position_ask(int fd);
/* Other descriptors share fd's position. */
void position_shared(int fd);
void position_forget(int fd);
/* This process shares all its present descriptors with the process that forked it. */
void position_inherited(void);
/* Where the `bytes` that read() has just returned began; negative: unknown. */
int64_t position_read(int fd, uint64_t bytes);

/* The current extent waits with others for the ring, because the ring costs an atomic operation. */
static inline void extent_end(struct crema_thread *t)
{
	uint32_t at = t->extents_ended;

	t->extent_ended_offset[at] = t->extent_offset;
	t->extent_ended_bytes[at] = (uint32_t)t->extent_bytes;
	t->extent_bytes = 0;
	STORE(&t->extents_ended, at + 1);
}

/* `bytes` > 0 of the thread's present file row were read. */
static inline void extent_read(struct crema_thread *t, int fd, int64_t offset, uint64_t bytes)
{
	if (offset < 0)
		offset = position_read(fd, bytes);
	if ((uint64_t)offset == t->extent_offset + t->extent_bytes && t->extent_bytes &&
	    t->extent_bytes < CREMA_EXTENT_BYTES) {
		t->extent_bytes += bytes;
		return;
	}
	if (t->extent_bytes) {
		if (unlikely(t->extents_ended == CREMA_EXTENTS_ENDED))
			extent_flush(t);
		else
			extent_end(t);
	}
	if (likely(offset >= 0)) {
		t->extent_offset = (uint64_t)offset;
		t->extent_bytes = bytes;
	}
}

#endif
