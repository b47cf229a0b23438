/* SPDX-License-Identifier: BSD-3-Clause */
/* extent.c - positions of descriptors, and the ring of extents. */
#define _GNU_SOURCE
#include "shim/count/extent.h"

#include <unistd.h>

#include "shim/count/fd.h"
#include "shim/libc/sys.h"

/* Private memory, a word per descriptor: one of these, or the position + FIRST. */
enum { ASK = 0, SHARED = 1, FIRST = 2 };
static uint64_t positions[FD_TABLE];
static int inherited; /* a descriptor that we did not see opened */

void position_set(int fd, uint64_t offset)
{
	if ((unsigned int)fd < FD_TABLE && LOAD(&positions[fd]) != SHARED)
		STORE(&positions[fd], offset + FIRST);
}

void position_ask(int fd)
{
	if ((unsigned int)fd < FD_TABLE && LOAD(&positions[fd]) != SHARED)
		STORE(&positions[fd], ASK);
}

void position_shared(int fd)
{
	if ((unsigned int)fd < FD_TABLE)
		STORE(&positions[fd], SHARED);
}

void position_forget(int fd)
{
	if (LOAD(&positions[fd]))
		STORE(&positions[fd], ASK);
}

void position_inherited(void)
{
	for (int i = 0; i < FD_TABLE; i++)
		position_forget(i);
	inherited = 1;
}

int64_t position_read(int fd, uint64_t bytes)
{
	uint64_t word = (unsigned int)fd < FD_TABLE ? LOAD(&positions[fd]) : SHARED, none = ASK;
	long at;

	if (word == SHARED || (word == ASK && inherited))
		return -1;
	/* Added, not set: threads that read the same descriptor share its bytes among them. */
	if (likely(word != ASK))
		return (int64_t)(ADD(&positions[fd], bytes) - FIRST);
	at = SYS3(SYS_lseek, fd, 0, SEEK_CUR);
	if (at < (long)bytes ||
	    !__atomic_compare_exchange_n(&positions[fd], &none, (uint64_t)at + FIRST, 0,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return -1;
	return at - (long)bytes;
}

/* Reserves up to n consecutive places of the ring at once, from *first on: all threads share the
 * cache line of its head. */
static uint32_t reserve(uint32_t n, uint64_t *first)
{
	uint64_t used;

	*first = LOAD(&crema_shm->extents_head);
	do {
		used = *first - LOAD(&crema_shm->extents_tail);
		if (used >= CREMA_SHM_EXTENTS)
			return 0;
		if (n > CREMA_SHM_EXTENTS - used)
			n = (uint32_t)(CREMA_SHM_EXTENTS - used);
	} while (!__atomic_compare_exchange_n(&crema_shm->extents_head, first, *first + n, 1,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return n;
}

static void put(uint64_t at, uint32_t row, uint64_t offset, uint64_t bytes)
{
	struct crema_extent *e = &crema_shm->extent[at % CREMA_SHM_EXTENTS];

	e->offset = offset;
	e->bytes = (uint32_t)bytes;
	__atomic_store_n(&e->row, row, __ATOMIC_RELEASE);
}

void extent_flush(struct crema_thread *t)
{
	uint64_t offset = t->extent_offset, bytes = t->extent_bytes, at;
	uint32_t n = t->extents_ended, room;

	/* If the thread is killed in here, extents are missing, never duplicated. */
	t->extent_bytes = 0;
	STORE(&t->extents_ended, 0);
	if (!t->file_row || (!n && !bytes))
		return;
	room = reserve(n + (bytes > 0), &at);
	for (uint32_t i = 0; i < n && i < room; i++)
		put(at + i, t->file_row, t->extent_ended_offset[i], t->extent_ended_bytes[i]);
	if (bytes && room > n)
		put(at + n, t->file_row, offset, bytes);
}

void extent_basket(uint32_t row, uint64_t offset, uint64_t bytes)
{
	uint64_t at;

	if (offset != UINT64_MAX && bytes <= CREMA_EXTENT_BYTES && reserve(1, &at))
		put(at, row | CREMA_EXTENT_BASKET, offset, bytes);
}
