/* SPDX-License-Identifier: BSD-3-Clause */
/* heap.c - walks the blocks of glibc's heaps in another process. */
#include "agent/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/procfs.h"
#include "switch.h"

#define AREA (64ull << 20) /* of an arena, and its alignment: HEAP_MAX_SIZE */
#define PAGE 4096ull
#define WINDOW 65536u
#define LEAST_BLOCK 32u
#define HEADER 16u
#define TRIES 3
/* Where an arena's first block may be behind its struct malloc_state, whose size differs. */
#define STATE_MIN 0x840u
#define STATE_MAX 0x8e0u

struct walk {
	int pid, pagemap;
	uint64_t begun_ns;
	uint8_t *resident; /* a bit for each page from `base` on */
	uint64_t base, pages;
	uint64_t window, window_bytes; /* what `bytes` has */
	bool huge;		       /* the kernel's page is not PAGE, or pages are swapped out */
	uint8_t bytes[WINDOW];
};

static bool is_resident(const struct walk *w, uint64_t at)
{
	uint64_t page = (at - w->base) / PAGE;

	return page < w->pages && w->resident[page / 8] >> (page % 8) & 1;
}

static uint64_t count_resident(const struct walk *w, uint64_t from, uint64_t end)
{
	uint64_t n = 0;

	for (; from < end; from += PAGE)
		n += is_resident(w, from);
	return n * PAGE;
}

/* Of the pages of from to end, both multiples of PAGE. */
static int map_pages(struct walk *w, uint64_t from, uint64_t end)
{
	uint64_t n = (end - from) / PAGE, i, k, *entry = (uint64_t *)(void *)w->bytes;
	uint8_t *bits = realloc(w->resident, n / 8 + 1);
	ssize_t got;

	if (!bits)
		return -ENOMEM;
	w->resident = bits;
	memset(bits, 0, n / 8 + 1);
	w->base = from;
	w->pages = n;
	w->window_bytes = 0;
	for (i = 0; i < n; i += k) {
		k = n - i < WINDOW / 8 ? n - i : WINDOW / 8;
		got = pread(w->pagemap, w->bytes, k * 8, (off_t)((from / PAGE + i) * 8));
		if (got < 8)
			return -EAGAIN;
		k = (uint64_t)got / 8;
		for (uint64_t j = 0; j < k; j++) {
			bits[(i + j) / 8] |= (uint8_t)((entry[j] >> 63) << ((i + j) % 8));
			w->huge |= entry[j] >> 62 & 1;
		}
	}
	return w->huge ? -ENOTSUP : 0;
}

static bool read_bytes(int pid, uint64_t at, void *to, size_t n)
{
	struct iovec local = {to, n}, remote = {(void *)(uintptr_t)at, n};

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)n;
}

/* The word with size and flags of the block at `at`. After a large block only this is read. */
static int size_word(struct walk *w, uint64_t at, uint64_t end, uint64_t last, uint64_t *word)
{
	uint64_t until;

	if (at < w->window || at + HEADER > w->window + w->window_bytes) {
		if (!is_resident(w, at))
			return -EAGAIN;
		until = last > WINDOW / 16 ? at + HEADER : at + WINDOW;
		until = until > end ? end : until;
		for (uint64_t p = (at / PAGE + 1) * PAGE; p < until; p += PAGE)
			if (!is_resident(w, p))
				until = p;
		if (until < at + HEADER)
			return -EAGAIN;
		if (!read_bytes(w->pid, at, w->bytes, until - at))
			return errno == EPERM || errno == ENOSYS ? -EACCES : -EAGAIN;
		w->window = at;
		w->window_bytes = until - at;
	}
	memcpy(word, w->bytes + (at - w->window) + 8, 8);
	return 0;
}

/* The pages that malloc_trim(0) returns are those after the block's own links (48 bytes); of
 * the last block of the main heap all but what an empty one needs; of an arena's last block none.
 */
static void add_free(const struct walk *w, uint64_t at, uint64_t next, bool top, bool main,
		     struct heap_sums *sum)
{
	uint64_t from = (at + (top ? LEAST_BLOCK + 1 : 48) + PAGE - 1) & ~(PAGE - 1);
	uint64_t end = next & ~(PAGE - 1), whole;

	if (from >= end) {
		sum->free += next - at;
		return;
	}
	whole = count_resident(w, from, end);
	sum->free += next - at - (end - from) + whole;
	if (!top || main)
		sum->returnable += whole;
}

/* From the first block at `at` to the end of its heap: -EAGAIN if they are no chain. */
static int walk_blocks(struct walk *w, uint64_t at, uint64_t end, bool main, struct heap_sums *sum)
{
	uint64_t word, size = WINDOW, next_word, steps = 0;
	int rc = size_word(w, at, end, size, &word);

	for (; !rc; at += size, word = next_word) {
		size = word & ~7ull;
		if (!size && at + HEADER == end)
			return 0; /* an area that is full ends so */
		if (size < HEADER || size % HEADER || size > end - at)
			return -EAGAIN;
		if (at + size == end) {
			add_free(w, at, end, true, main, sum);
			return 0;
		}
		rc = size_word(w, at + size, end, size, &next_word);
		if (!rc && !(next_word & 1))
			add_free(w, at, at + size, false, main, sum);
		if (!(++steps % 1024) && clock_mono_ns() - w->begun_ns > HEAP_LIMIT_NS)
			return -ETIME;
	}
	return rc;
}

static int walk_main(struct walk *w, uint64_t start, uint64_t end, struct heap_sums *sum)
{
	int rc = map_pages(w, start, end);

	if (rc)
		return rc;
	sum->resident += count_resident(w, start, end);
	return walk_blocks(w, start, end, true, sum);
}

struct area {
	uint64_t arena, previous, size, writable;
};

/* What is at a multiple of AREA is the head of an arena's area, whose mapping ends at `end`. */
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
	uint64_t first = a->arena & ~(AREA - 1), end = at + a->size, block = a->arena - first + at;
	uint64_t last = block;
	int rc = map_pages(w, at, end);

	if (first == at) {
		last = block + STATE_MAX;
		block += STATE_MIN;
	}
	for (sum->resident += rc ? 0 : count_resident(w, at, end); !rc; block += 16) {
		struct heap_sums found = *sum;

		rc = walk_blocks(w, block, end, false, &found);
		if (!rc) {
			*sum = found;
			return 0;
		}
		if (rc == -EAGAIN && block < last)
			rc = 0;
	}
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

	if (m->brk)
		return walk_main(w, m->start, m->end, sum);
	for (uint64_t at = (m->start + AREA - 1) & ~(AREA - 1); at < m->end && !rc; at += AREA)
		if (read_bytes(w->pid, at, &a, sizeof(a)) && is_area(&a, at, m->end))
			rc = walk_area(w, at, &a, sum);
	return rc;
}

/* Every heap in the text of maps once. After a fork the kernel has it in several parts. */
static int walk_maps(struct walk *w, const char *maps, struct heap_sums *sum)
{
	struct mapping all = {0}, part;
	int rc = 0;

	memset(sum, 0, sizeof(*sum));
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

/* Why it is another allocator's; NULL: it is not known to be. */
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
		return "it has too many blocks";
	case -ENOTSUP:
		return "pages are swapped out";
	default:
		return "the kernel does not let the agent read it";
	}
}

int heap_read(int pid, struct heap_sums *out, const char **why)
{
	struct walk *w = calloc(1, sizeof(*w));
	struct buf maps = {0};
	char name[64];
	int rc = -ENOMEM;

	*why = NULL;
	if (!w)
		return rc;
	snprintf(name, sizeof(name), "/proc/%d/pagemap", pid);
	w->pid = pid;
	w->begun_ns = clock_mono_ns();
	w->pagemap = sysconf(_SC_PAGESIZE) == (long)PAGE ? open(name, O_RDONLY | O_CLOEXEC) : -1;
	rc = w->pagemap < 0 ? -EACCES : -EAGAIN;
	for (int i = 0; i < TRIES && rc == -EAGAIN; i++) {
		buf_clear(&maps);
		if (procfs_slurp_all(&maps, "/proc/%d/maps", pid)) {
			rc = -EACCES;
			break;
		}
		*why = other_allocator((const char *)maps.data);
		rc = *why ? -ENOTSUP : walk_maps(w, (const char *)maps.data, out);
	}
	if (!*why)
		*why = reason(rc);
	if (w->pagemap >= 0)
		close(w->pagemap);
	buf_release(&maps);
	free(w->resident);
	free(w);
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
