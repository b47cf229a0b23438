/* SPDX-License-Identifier: BSD-3-Clause */
/* heap.c - walks the blocks of glibc's heaps in another process. */
#include "agent/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/doing_object.h"
#include "common/clock.h"
#include "common/procfs.h"
#include "switch.h"

#define AREA (64ull << 20) /* of an arena, and its alignment: HEAP_MAX_SIZE */
#define AREAS_MAX 16384	   /* a terabyte: shadow memory of a sanitizer is larger */
#define PAGE 4096ull
#define ENTRIES 512u /* of pagemap in one read */
#define LEAST_BLOCK 32u
#define HEADER 16u
#define TRIES 2
/* Possible distances of an arena's first block from its struct malloc_state, whose size differs. */
#define STATE_MIN 0x840u
#define STATE_MAX 0x8e0u

struct walk {
	int pid, pagemap;
	uint64_t begun_ns;
	unsigned int areas;
	uint64_t bytes_from, page; /* range of `bytes`: to the end of its page */
	uint8_t bytes[PAGE];
};

/* Bytes of the resident pages from `from` to `end`, both multiples of PAGE; -errno. */
static int64_t count_resident(const struct walk *w, uint64_t from, uint64_t end)
{
	uint64_t entry[ENTRIES], at = from / PAGE, last = end / PAGE, want;
	int64_t n = 0;
	ssize_t got;

	for (; at < last; at += (uint64_t)got / 8) {
		want = last - at < ENTRIES ? last - at : ENTRIES;
		got = pread(w->pagemap, entry, want * 8, (off_t)(at * 8));
		if (got < 8)
			return -EAGAIN;
		for (ssize_t i = 0; i < got / 8; i++)
			n += (int64_t)(entry[i] >> 63);
	}
	return n * (int64_t)PAGE;
}

/* The word with size and flags of the block at `at`. A page with a header is resident: it is read
 * to its end at once. */
static int size_word(struct walk *w, uint64_t at, uint64_t *word)
{
	uint64_t end = (at / PAGE + 1) * PAGE;

	if (end != w->page || w->bytes_from > at) {
		if (doing_memory(w->pid, at, w->bytes, end - at) != end - at)
			return errno == EPERM || errno == ENOSYS ? -EACCES : -EAGAIN;
		w->page = end;
		w->bytes_from = at;
	}
	memcpy(word, w->bytes + (at - w->bytes_from) + 8, 8);
	return 0;
}

/* malloc_trim(0) returns the pages after the block's own links (48 bytes). Of the last block of the
 * main heap it returns all but what an empty one needs; of an arena's last block, nothing. */
static int add_free(const struct walk *w, uint64_t at, uint64_t next, bool top, bool main,
		    struct heap_sums *sum)
{
	uint64_t from = (at + (top ? LEAST_BLOCK + 1 : 48) + PAGE - 1) & ~(PAGE - 1);
	uint64_t end = next & ~(PAGE - 1);
	int64_t whole = from < end ? count_resident(w, from, end) : 0;

	if (whole < 0)
		return (int)whole;
	sum->free += next - at - (from < end ? end - from : 0) + (uint64_t)whole;
	sum->resident -= (from < end ? end - from : 0) - (uint64_t)whole;
	if (!top || main)
		sum->returnable += (uint64_t)whole;
	return 0;
}

/* From the first block at `at` to the end of its heap: -EAGAIN if they do not form a chain. */
static int walk_blocks(struct walk *w, uint64_t at, uint64_t end, bool main, struct heap_sums *sum)
{
	uint64_t word, size, next_word, steps = 0;
	int rc = size_word(w, at, &word);

	for (; !rc; at += size, word = next_word) {
		size = word & ~7ull;
		if (!size && at + HEADER == end)
			return 0; /* a full area ends like this */
		if (size < HEADER || size % HEADER || size > end - at)
			return -EAGAIN;
		if (at + size == end)
			return add_free(w, at, end, true, main, sum);
		rc = size_word(w, at + size, &next_word);
		if (!rc && !(next_word & 1))
			rc = add_free(w, at, at + size, false, main, sum);
		if (!(++steps % 1024) && clock_mono_ns() - w->begun_ns > HEAP_LIMIT_NS)
			return -ETIME;
	}
	return rc;
}

struct area {
	uint64_t arena, previous, size, writable;
};

/* At a multiple of AREA is the head of an arena's area, whose mapping ends at `end`. */
static bool is_area(const struct area *a, uint64_t at, uint64_t end)
{
	uint64_t first = a->arena & ~(AREA - 1);
	bool whole = !(a->size % PAGE) && a->size >= PAGE && a->size <= a->writable &&
		     a->writable <= AREA && a->size <= end - at;

	if (!whole || a->arena % 16 || a->arena - first < sizeof(*a) || a->arena - first > 64)
		return false;
	return first == at ? !a->previous : a->previous && !(a->previous % AREA);
}

static int walk_area(struct walk *w, uint64_t at, const struct area *a, struct heap_sums *sum)
{
	uint64_t first = a->arena & ~(AREA - 1), block = a->arena - first + at, last = block;
	struct heap_sums found;
	int rc = -EAGAIN;

	if (first == at) {
		last = block + STATE_MAX;
		block += STATE_MIN;
	}
	for (; rc == -EAGAIN && block <= last; block += 16) {
		found = *sum;
		found.resident += a->size;
		rc = walk_blocks(w, block, at + a->size, false, &found);
	}
	if (!rc)
		*sum = found;
	return rc;
}

struct mapping {
	uint64_t start, end;
	bool brk;
};

/* A line of maps: private, writable memory without a file. */
static bool anonymous(const char *line, struct mapping *m)
{
	unsigned long long from, to, inode;
	char mode[5];
	int n = 0;

	if (sscanf(line, "%llx-%llx %4s %*s %*s %llu%n", &from, &to, mode, &inode, &n) != 4)
		return false;
	if (memcmp(mode, "rw-p", 4) != 0 || inode)
		return false;
	line += n + (int)strspn(line + n, " ");
	*m = (struct mapping){from, to, !strncmp(line, "[heap]", 6)};
	return m->brk || *line == '\n' || !*line || !strncmp(line, "[anon:", 6);
}

static int walk_mapping(struct walk *w, const struct mapping *m, struct heap_sums *sum)
{
	struct area a;
	int rc = 0;

	if (m->brk) {
		sum->resident += m->end - m->start;
		return walk_blocks(w, m->start, m->end, true, sum);
	}
	for (uint64_t at = (m->start + AREA - 1) & ~(AREA - 1); at < m->end && !rc; at += AREA) {
		if (++w->areas > AREAS_MAX)
			return -ETIME;
		/* Reading memory that was never used would give the worker page tables for it. */
		if (count_resident(w, at, at + PAGE) > 0 &&
		    doing_memory(w->pid, at, &a, sizeof(a)) == sizeof(a) && is_area(&a, at, m->end))
			rc = walk_area(w, at, &a, sum);
	}
	return rc;
}

/* Visits every heap in the text of maps once. After a fork the kernel lists it in several parts. */
static int walk_maps(struct walk *w, const char *maps, struct heap_sums *sum)
{
	struct mapping all = {0}, part;
	int rc = 0;

	memset(sum, 0, sizeof(*sum));
	w->page = 0;
	w->areas = 0;
	for (const char *line = maps; line && *line && !rc; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!*line || !anonymous(line, &part))
			continue;
		if (part.start == all.end && part.brk == all.brk) {
			all.end = part.end;
			continue;
		}
		rc = walk_mapping(w, &all, sum);
		all = part;
	}
	return rc ? rc : walk_mapping(w, &all, sum);
}

/* Why the heap is another allocator's; NULL: none is known. */
static const char *other_allocator(const char *maps)
{
	static const char *const others[][2] = {
		{"libjemalloc", "malloc is jemalloc's"},
		{"libtcmalloc", "malloc is tcmalloc's"},
		{"libmimalloc", "malloc is mimalloc's"},
		{"libtbbmalloc_proxy", "malloc is TBB's"},
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strstr(maps, others[i][0]))
			return others[i][1];
	return strstr(maps, "/libc.so.6\n") || strstr(maps, "/libc-2.") ? NULL : "no glibc";
}

static const char *reason(int rc)
{
	switch (rc) {
	case 0:
		return NULL;
	case -EAGAIN:
		return "its blocks changed while they were read";
	case -ETIME:
		return "it has too many blocks, or too much address space";
	case -ENOTSUP:
		return "pages are swapped out, or not of 4 KiB";
	case -EACCES:
		return "the kernel does not let the agent read it";
	default:
		return "the process has ended";
	}
}

/* Reading headers would bring pages back. */
static bool is_swapped(int pid)
{
	char text[4096];
	uint64_t kb = 0;

	return procfs_slurp(text, sizeof(text), "/proc/%d/status", pid) > 0 &&
	       procfs_number(text, "VmSwap:", &kb) && kb;
}

static int read_heaps(struct walk *w, struct buf *maps, struct heap_sums *out, const char **why)
{
	int rc = procfs_slurp_all(maps, "/proc/%d/maps", w->pid);

	if (rc)
		return rc;
	if (!maps->data[0])
		return -ESRCH; /* a zombie */
	*why = other_allocator((const char *)maps->data);
	if (*why || is_swapped(w->pid))
		return -ENOTSUP;
	return walk_maps(w, (const char *)maps->data, out);
}

int heap_read(int pid, struct heap_sums *out, const char **why)
{
	struct walk w = {.pid = pid, .begun_ns = clock_mono_ns()};
	struct buf maps = BUF_INIT;
	char name[64];
	int rc = -EAGAIN;

	*why = NULL;
	snprintf(name, sizeof(name), "/proc/%d/pagemap", pid);
	w.pagemap = open(name, O_RDONLY | O_CLOEXEC);
	if (w.pagemap < 0)
		rc = errno == EPERM ? -EACCES : -errno;
	else if (sysconf(_SC_PAGESIZE) != (long)PAGE)
		rc = -ENOTSUP;
	for (int i = 0; i < TRIES && rc == -EAGAIN; i++) {
		buf_clear(&maps);
		rc = read_heaps(&w, &maps, out, why);
	}
	if (!*why)
		*why = reason(rc);
	if (w.pagemap >= 0)
		close(w.pagemap);
	buf_release(&maps);
	return rc;
}

void heap_watch_init(struct heap_watch *w, int pid)
{
	memset(w, 0, sizeof(*w));
	w->pid = pid;
	w->off = crema_switch(getenv("CREMA_HEAP"), 1) == 0;
}

bool heap_watch_read(struct heap_watch *w, uint64_t mono_ns, struct heap_sums *out)
{
	uint64_t begun = clock_thread_ns();
	const char *why;
	int rc;

	if (w->off || mono_ns < w->next_ns)
		return false;
	rc = heap_read(w->pid, out, &why);
	w->next_ns = mono_ns + (uint64_t)((double)(clock_thread_ns() - begun) / HEAP_SHARE);
	w->note[0] = '\0';
	if (rc == -ENOTSUP || rc == -EACCES)
		snprintf(w->note, sizeof(w->note), "what malloc holds is unknown: %s", why);
	return !rc;
}
