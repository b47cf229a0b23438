/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.c - creates the shared memory and arms the process; snapshots; notes. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "shim/count/clock.h"
#include "shim/count/large.h"
#include "shim/count/poll_rings.h"
#include "shim/count/task.h"
#include "shim/count/thread.h"
#include "shim/libc/sys.h"

static const volatile uint32_t never = 0;
const volatile uint32_t *crema_armed = &never;
struct crema_shm *crema_shm;
uint32_t shim_epoch;
int shim_off;
static char path[512];
static struct usage {
	uint64_t cpu_ns, inblock, oublock;
} process_base, children_base;

const char *shim_path(void)
{
	return path;
}

int shim_same_process(void)
{
	return (uint32_t)sys_getpid() == crema_shm->pid;
}

void shim_say(const char *text, const char *detail)
{
	char line[512] = "crema: ";
	size_t n = 7, m = strlen(text);

	if (m > sizeof(line) - n - 2)
		m = sizeof(line) - n - 2;
	memcpy(line + n, text, m);
	n += m;
	m = detail ? strlen(detail) : 0;
	if (m > sizeof(line) - n - 1)
		m = sizeof(line) - n - 1;
	if (m)
		memcpy(line + n, detail, m);
	n += m;
	line[n++] = '\n';
	SYS3(SYS_write, 2, line, n);
}

void shim_note(const char *text)
{
	uint32_t id, at;

	if (!crema_shm)
		return;
	id = arena_id(text, (uint32_t)strlen(text));
	for (at = 0; at < CREMA_SHM_NOTES; at++) {
		uint32_t have = 0;

		if (__atomic_compare_exchange_n(&crema_shm->note[at], &have, id, 0,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			ADD(&crema_shm->notes, 1);
			return;
		}
		if (have == id)
			return;
	}
}

static void hex(char *to, const uint8_t *from, int n)
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < n; i++) {
		*to++ = digits[from[i] >> 4];
		*to++ = digits[from[i] & 15];
	}
	*to = 0;
}

static int file_limit_allows(uint64_t bytes)
{
	uint64_t limit[2] = {0, 0};

	/* Beyond RLIMIT_FSIZE fallocate would raise SIGXFSZ in the host. */
	if (SYS4(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, limit) < 0)
		return 0;
	return limit[0] >= bytes;
}

static struct crema_shm *map_file(const char *dir, const char *name)
{
	size_t n = strlen(dir);
	void *m;
	int fd;

	if (n + strlen(name) + 2 > sizeof(path))
		return NULL;
	memcpy(path, dir, n);
	path[n] = '/';
	strcpy(path + n + 1, name);
	fd = sys_open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return NULL;
	m = MAP_FAILED;
	/* Reserved in full before the first touch: on a full tmpfs a touch would be SIGBUS. */
	if (SYS4(SYS_fallocate, fd, 0, 0, sizeof(struct crema_shm)) == 0)
		m = mmap(NULL, sizeof(struct crema_shm), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_POPULATE, fd, 0);
	sys_close(fd);
	if (m != MAP_FAILED)
		return m;
	SYS3(SYS_unlinkat, AT_FDCWD, path, 0);
	path[0] = 0;
	return NULL;
}

static struct crema_shm *make_file(const uint8_t *worker, const char **why)
{
	char name[64] = "crema-";
	const char *tmp = getenv("TMPDIR");
	struct crema_shm *m;

	if (!file_limit_allows(sizeof(struct crema_shm))) {
		*why = "RLIMIT_FSIZE is below 4 MiB; raise it with 'ulimit -f'";
		return NULL;
	}
	hex(name + 6, worker, 16);
	m = map_file("/dev/shm", name);
	if (!m)
		m = map_file(tmp && tmp[0] == '/' ? tmp : "/tmp", name);
	if (!m)
		*why = "no room for 4 MiB in /dev/shm or the temporary folder; free some space";
	return m;
}

/* Reads both clocks at one moment: of several readings it takes the one whose two tick readings are
 * closest, so being switched out in between does no harm. */
static void clock_pair(uint64_t *tick, uint64_t *ns)
{
	uint64_t best = ~0ull;

	for (int i = 0; i < 64; i++) {
		uint64_t before = ticks(), now = clock_ns(CLOCK_MONOTONIC), after = ticks();

		if (after - before >= best)
			continue;
		best = after - before;
		*tick = before + best / 2;
		*ns = now;
	}
}

/* Nanoseconds per tick, times 2^32. Two pairs 10 ms apart are good to 2 us in 30 s; start and end
 * of a task also carry the clock itself. */
static uint64_t calibrate(void)
{
	uint64_t t0 = 0, c0 = 0, t1 = 0, c1 = 0;

#if defined(__aarch64__)
	uint64_t hz;

	__asm__("mrs %0, cntfrq_el0" : "=r"(hz));
	return (uint64_t)(1e9 * 4294967296.0 / (double)hz);
#endif
	clock_pair(&t0, &c0);
	while (clock_ns(CLOCK_MONOTONIC) - c0 < 10000000u)
		;
	clock_pair(&t1, &c1);
	return t1 > t0 ? (uint64_t)((double)(c1 - c0) * 4294967296.0 / (double)(t1 - t0)) : 0;
}

static uint64_t start_ticks(void)
{
	char buf[1024], *p;
	long n = sys_slurp("/proc/self/stat", buf, sizeof(buf));
	uint64_t v = 0;

	p = n > 0 ? strrchr(buf, ')') : NULL;
	for (int field = 2; p && field < 22; field++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	for (; p && *p >= '0' && *p <= '9'; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	return v;
}

static void fill_header(struct crema_shm *m, const uint8_t *worker)
{
	m->abi = CREMA_SHM_ABI;
	m->header_bytes = offsetof(struct crema_shm, task);
	m->total_bytes = sizeof(*m);
	m->tables = crema_shm_tables();
	m->task_bytes = sizeof(struct crema_task);
	m->thread_bytes = sizeof(struct crema_thread);
	m->file_bytes = sizeof(struct crema_file);
	m->tasks = CREMA_SHM_TASKS;
	m->threads = CREMA_SHM_THREADS;
	m->files = CREMA_SHM_FILES;
	memcpy(m->worker, worker, 16);
	m->pid = (uint32_t)sys_getpid();
	m->uid = (uint32_t)SYS0(SYS_getuid);
	m->start_ticks = start_ticks();
	m->tsc_mult = calibrate();
	m->armed_tsc = ticks();
	m->armed_mono_ns = clock_ns(CLOCK_MONOTONIC);
	m->armed_boot_ns = clock_ns(CLOCK_BOOTTIME);
	m->armed_real_ns = clock_ns(CLOCK_REALTIME);
	m->strings_used = 8; /* id 0 means "no text" */
	m->file[CREMA_SHM_FILES - 1].kind = CREMA_FILE_OTHER;
	m->file[CREMA_SHM_FILES - 1].state = 2;
	__atomic_store_n(&m->magic, CREMA_SHM_MAGIC, __ATOMIC_RELEASE);
}

static uint64_t timeval_ns(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_usec * 1000u;
}

static struct usage usage_of(const struct rusage *ru)
{
	return (struct usage){timeval_ns(&ru->ru_utime) + timeval_ns(&ru->ru_stime),
			      (uint64_t)ru->ru_inblock, (uint64_t)ru->ru_oublock};
}

static struct usage children_usage(void)
{
	struct rusage ru;

	memset(&ru, 0, sizeof(ru));
	SYS2(SYS_getrusage, RUSAGE_CHILDREN, &ru);
	return usage_of(&ru);
}

void shim_leave_out_child(const struct rusage *ru)
{
	struct usage own = usage_of(ru);

	children_base.cpu_ns += own.cpu_ns;
	children_base.inblock += own.inblock;
	children_base.oublock += own.oublock;
}

static uint64_t above(uint64_t now, uint64_t base)
{
	return now > base ? now - base : 0;
}

/* Each of the kernel's numbers is truncated to microseconds, so the base may be above the sum. */
static void put_children(struct crema_snapshot *s)
{
	struct usage now = children_usage();

	s->children_cpu_ns = above(now.cpu_ns, children_base.cpu_ns);
	s->children_inblock = above(now.inblock, children_base.inblock);
	s->children_oublock = above(now.oublock, children_base.oublock);
}

static struct usage process_usage(void)
{
	struct rusage ru;
	struct usage u;

	memset(&ru, 0, sizeof(ru));
	u.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	SYS2(SYS_getrusage, RUSAGE_SELF, &ru);
	u.inblock = (uint64_t)ru.ru_inblock;
	u.oublock = (uint64_t)ru.ru_oublock;
	return u;
}

void shim_disarm(void)
{
	crema_armed = &never;
	SYS3(SYS_unlinkat, AT_FDCWD, path, 0);
	path[0] = 0;
}

/* glibc only: the shim relies on its clocks, thread keys and lock layout. */
extern __attribute__((weak)) const char *gnu_get_libc_version(void);

int shim_arm(const char **why)
{
	uint8_t worker[16];
	uint32_t *word;

	if (!gnu_get_libc_version) {
		*why = "the C library is not glibc; use an image with glibc";
		return -ENOSYS;
	}
	if (SYS3(SYS_getrandom, worker, 16, 0) != 16) {
		*why = "the kernel gives no random numbers";
		return -ENOSYS;
	}
	word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (word == MAP_FAILED || SYS3(SYS_madvise, word, 4096, 18 /* MADV_WIPEONFORK */) < 0) {
		*why = "the kernel is older than 4.14 (no MADV_WIPEONFORK)";
		return -ENOSYS;
	}
	crema_shm = make_file(worker, why);
	if (!crema_shm)
		return -ENOSPC;
	fill_header(crema_shm, worker);
	if (!crema_shm->tsc_mult) {
		*why = "the time stamp counter stands still";
		shim_disarm();
		return -ENOSYS;
	}
	thread_block = NULL;
	shim_epoch++;
	process_base = process_usage();
	children_base = children_usage(); /* a forked child has none of its parent's */
	task_memory_begins();
	clock_begin();
	poll_rings_armed();
	thread_key_make();
	thread_register_all();
	large_begin();
	*word = 1;
	crema_armed = word;
	return 0;
}

struct boundary_sum {
	uint32_t flags; /* as crema_snapshot's */
	uint64_t cpu, in, out;
};

/* One thread's share; 0 if it has ended unseen. */
static int snapshot_thread(struct crema_thread *t, uint32_t tid, struct boundary_sum *sum)
{
	int unread = thread_io(tid, &t->now_inblock, &t->now_oublock) < 0;
	uint64_t now = thread_cpu_ns(tid);

	if (!now)
		return 0;
	if (unread)
		sum->flags &= ~1u;
	t->now_cpu_ns = now;
	sum->cpu += t->now_cpu_ns - t->armed_cpu_ns;
	sum->in += t->now_inblock - t->armed_inblock;
	sum->out += t->now_oublock - t->armed_oublock;
	return 1;
}

void shim_snapshot(void)
{
	struct crema_snapshot *s = &crema_shm->snapshot;
	struct crema_totals *totals = &crema_shm->totals;
	struct boundary_sum sum = {1, 0, 0, 0};
	struct crema_thread *self = thread_self();
	struct usage process;

	for (uint32_t i = 0; i < CREMA_SHM_THREADS; i++) {
		struct crema_thread *t = &crema_shm->thread[i];
		uint32_t tid = LOAD(&t->tid);

		if (t == self || LOAD(&t->state) != 1 || !tid)
			continue;
		if (!snapshot_thread(t, tid, &sum) && thread_reap(t, tid))
			sum.flags |= 2;
	}
	/* This thread last, followed directly by the process, so both have the same moment. */
	if (self)
		snapshot_thread(self, self->tid, &sum);
	process = process_usage();
	sum.cpu += LOAD(&totals->exited_cpu_ns);
	sum.in += LOAD(&totals->exited_inblock);
	sum.out += LOAD(&totals->exited_oublock);
	ADD(&s->seq, 1);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	s->flags = sum.flags;
	s->boot_ns = clock_ns(CLOCK_BOOTTIME);
	s->mono_ns = clock_ns(CLOCK_MONOTONIC);
	s->tsc = ticks();
	s->process_cpu_ns = process.cpu_ns - process_base.cpu_ns;
	s->process_inblock = process.inblock - process_base.inblock;
	s->process_oublock = process.oublock - process_base.oublock;
	s->seen_cpu_ns = sum.cpu;
	s->seen_inblock = sum.in;
	s->seen_oublock = sum.out;
	put_children(s);
	s->in_flight = LOAD(&totals->tasks_started) - LOAD(&totals->tasks_done);
	__atomic_fetch_add(&s->seq, 1, __ATOMIC_RELEASE);
}
