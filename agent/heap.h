/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heap.h - how much of a worker's memory the C library's allocator holds, read from outside.
 *
 * glibc's mallinfo2() walks every free block under the arenas' locks: that takes a second if 2 GB
 * are free in small pieces. So the agent walks the blocks of the heaps itself (process_vm_readv),
 * from the first header to the last, without a lock and without the worker's time. The worker runs
 * on meanwhile: a walk counts only if it ends exactly at the heap's end, and is tried once more if
 * not. Free pages that are not resident are neither read nor counted (/proc/PID/pagemap).
 *
 * Seen: the heap that grows by brk, and the other arenas, each in areas of 64 MiB. Not seen: blocks
 * with their own mapping, which free() unmaps, and what other allocators hold. Blocks in glibc's
 * caches of small ones (tcache, fastbins: at most 1 KiB each) count as in use, and what is in use
 * as resident.
 *
 * One thread. Uses at most HEAP_SHARE of a core on average, and takes HEAP_LIMIT_NS at most: about
 * 2 us for a block or a page of small ones, and 0.2 us for a free page.
 */
#ifndef CREMA_AGENT_HEAP_H
#define CREMA_AGENT_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#define HEAP_SHARE 0.005
#define HEAP_LIMIT_NS 500000000u

struct heap_sums {
	uint64_t resident;   /* of the heaps: their size without free pages that are not resident */
	uint64_t free;	     /* the part in free blocks */
	uint64_t returnable; /* the part of free that malloc_trim(0) returns: whole pages */
};

/*
 * 0, or -errno with *why if it is unknown: -EAGAIN (blocks changed too fast), -ETIME (longer than
 * HEAP_LIMIT_NS, or more than a terabyte of address space), -ENOTSUP (not glibc's allocator, or
 * pages swapped out), -EACCES, -ESRCH or -ENOENT (the process has ended).
 */
int heap_read(int pid, struct heap_sums *out, const char **why);

struct heap_watch {
	int pid;
	bool off; /* CREMA_HEAP */
	uint64_t next_ns;
	char note[80]; /* why this worker's heap stays unknown; "": it may become known */
};

void heap_watch_init(struct heap_watch *w, int pid);
/* True with *out, if it is due and known. Call it once a second at most. */
bool heap_watch_read(struct heap_watch *w, uint64_t mono_ns, struct heap_sums *out);

#endif
