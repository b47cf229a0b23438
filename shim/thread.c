/* SPDX-License-Identifier: BSD-3-Clause */
/* thread.c - blocks of threads, work segments, folding. */
#define _GNU_SOURCE
#include "thread.h"

#include <dirent.h>
#include <string.h>

#include "blocked.h"
#include "extent.h"
#include "fd.h"
#include "real.h"
#include "runqueue.h"
#include "sys.h"
#include "task.h"

__thread struct crema_thread *thread_block;

static struct crema_thread *claim(uint32_t tid)
{
	uint32_t start = ADD(&crema_shm->next_thread, 1);

	for (uint32_t i = 0; i < CREMA_SHM_THREADS; i++) {
		struct crema_thread *t = &crema_shm->thread[(start + i) % CREMA_SHM_THREADS];
		uint32_t none = 0;

		if (LOAD(&t->state) ||
		    !__atomic_compare_exchange_n(&t->state, &none, 1, 0, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		t->armed_cpu_ns = 0;
		t->armed_inblock = 0;
		t->armed_oublock = 0;
		t->now_cpu_ns = 0;
		t->now_inblock = 0;
		t->now_oublock = 0;
		t->extent_bytes = 0;
		t->extents_ended = 0;
		__atomic_store_n(&t->tid, tid, __ATOMIC_RELEASE);
		return t;
	}
	ADD(&crema_shm->totals.threads_refused, 1);
	return NULL;
}

struct crema_thread *thread_adopt(void)
{
	uint32_t tid = (uint32_t)sys_gettid();

	if (blocked_unwinding) /* libunwind works for us in this thread: nothing of it counts */
		return NULL;
	runqueue_forget();
	for (uint32_t i = 0; i < CREMA_SHM_THREADS; i++) {
		struct crema_thread *t = &crema_shm->thread[i];

		if (LOAD(&t->state) == 1 && t->tid == tid)
			return thread_block = t;
	}
	return thread_block = claim(tid);
}

static void number_of(const char *s, uint32_t *out)
{
	for (*out = 0; *s >= '0' && *s <= '9'; s++)
		*out = *out * 10 + (uint32_t)(*s - '0');
}

static uint64_t field_after(const char *text, const char *name)
{
	const char *p = strstr(text, name);
	uint64_t v = 0;

	for (p = p ? p + strlen(name) : ""; *p >= '0' && *p <= '9'; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	return v;
}

int thread_io(uint32_t tid, uint64_t *inblock, uint64_t *oublock)
{
	char path[48] = "/proc/self/task/", buf[512], digits[12], *p = path + 16;
	int n = 0;
	long got;

	for (; tid; tid /= 10)
		digits[n++] = (char)('0' + tid % 10);
	while (n)
		*p++ = digits[--n];
	memcpy(p, "/io", 4);
	got = sys_slurp(path, buf, sizeof(buf));
	if (got <= 0)
		return got < 0 ? (int)got : -1;
	*inblock = field_after(buf, "\nread_bytes: ") / 512;
	*oublock = field_after(buf, "\nwrite_bytes: ") / 512;
	return 0;
}

void thread_register_all(void)
{
	char buf[2048];
	int fd = sys_open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	long n;

	if (fd < 0)
		return;
	while ((n = SYS3(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < n;) {
			/* struct linux_dirent64: ino 8, off 8, reclen 2, type 1, name */
			struct crema_thread *t;
			uint16_t reclen;
			uint32_t tid;

			memcpy(&reclen, buf + at + 16, 2);
			number_of(buf + at + 19, &tid);
			t = tid ? claim(tid) : NULL;
			if (t) {
				t->armed_cpu_ns = thread_cpu_ns(tid);
				thread_io(tid, &t->armed_inblock, &t->armed_oublock);
			}
			at += reclen;
		}
	}
	sys_close(fd);
	thread_adopt();
}

int64_t thread_runqueue_ns(void)
{
	char buf[96], *p = buf;
	long n = sys_slurp("/proc/thread-self/schedstat", buf, sizeof(buf));
	int64_t v = 0;

	if (n <= 0)
		return n < 0 ? n : -1;
	while (*p >= '0' && *p <= '9')
		p++;
	while (*p == ' ')
		p++;
	for (; *p >= '0' && *p <= '9'; p++)
		v = v * 10 + (*p - '0');
	return v;
}

/* Which files this segment touched, and what bracketed calls were charged for them. Private: of a
 * killed task only the rows' storage bytes miss it, not the task's. */
static __thread struct {
	uint32_t row, rows;
	uint64_t charged_bytes;
} touched;

/* /proc and /sys cost no storage: a look there leaves a segment with the one file it has. */
static int is_storage(uint32_t row)
{
	int64_t f_type = crema_shm->filesystem[crema_shm->file[row - 1].filesystem].f_type;

	return f_type != 0x9fa0 && f_type != 0x62656572;
}

void segment_touches(uint32_t row)
{
	if (row == touched.row || !is_storage(row))
		return;
	touched.row = row;
	touched.rows++;
}

void segment_charged(uint64_t bytes)
{
	touched.charged_bytes += bytes;
}

/* What was charged outside bracketed calls (small reads, page faults): it is the one file's that
 * the segment touched; with several files nobody can tell, and the span's rest row gets it. */
static void charge_rest(struct crema_thread *t, uint64_t storage_bytes)
{
	uint32_t row;

	if (storage_bytes > touched.charged_bytes && task_slot(t->owner)) {
		row = touched.rows == 1 && touched.row ? touched.row
						       : file_rest_row(task_slot(t->owner)->span);
		ADD(&crema_shm->file[row - 1].storage_read_bytes,
		    storage_bytes - touched.charged_bytes);
	}
}

void thread_flush_file(struct crema_thread *t)
{
	extent_flush(t);
	if (t->file_row) {
		struct crema_file *f = &crema_shm->file[t->file_row - 1];

		ADD(&f->read_calls, t->file_read_calls);
		ADD(&f->read_bytes, t->file_read_bytes);
	}
	t->file_row = 0;
	t->file_read_calls = 0;
	t->file_read_bytes = 0;
}

/* Clocks of the thread at a boundary between segments. The CPU clock goes first: reading it brings
 * the scheduler's other numbers of this thread up to date. */
struct boundary {
	uint64_t tick, cpu_ns, inblock, oublock, nvcsw, nivcsw;
	int64_t runqueue_ns;
};

static void boundary_take(struct boundary *b)
{
	struct rusage ru;

	b->tick = ticks();
	b->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	memset(&ru, 0, sizeof(ru));
	SYS2(SYS_getrusage, 1 /* RUSAGE_THREAD */, &ru);
	b->runqueue_ns = runqueue_ns((uint64_t)ru.ru_nvcsw + (uint64_t)ru.ru_nivcsw);
	b->inblock = (uint64_t)ru.ru_inblock;
	b->oublock = (uint64_t)ru.ru_oublock;
	b->nvcsw = (uint64_t)ru.ru_nvcsw;
	b->nivcsw = (uint64_t)ru.ru_nivcsw;
}

static void segment_charge(struct crema_thread *t, const struct boundary *b)
{
	uint64_t *time = t->seg.time, *count = t->seg.count;

	time[CREMA_T_cpu] += b->cpu_ns - t->base_cpu_ns;
	if (b->runqueue_ns >= 0)
		time[CREMA_T_runqueue] += (uint64_t)b->runqueue_ns - t->base_runqueue_ns;
	else
		task_time_unknown(t->owner, CREMA_T_runqueue);
	count[CREMA_C_storage_read_bytes] += (b->inblock - t->base_inblock) * 512;
	charge_rest(t, (b->inblock - t->base_inblock) * 512);
	count[CREMA_C_storage_write_bytes] += (b->oublock - t->base_oublock) * 512;
	count[CREMA_C_voluntary_switches] += b->nvcsw - t->base_nvcsw;
	count[CREMA_C_involuntary_switches] += b->nivcsw - t->base_nivcsw;
	if (t->is_pool) {
		count[CREMA_C_pool_segments] += 1;
		count[CREMA_C_pool_wall_ns] += ticks_ns(b->tick - t->base_tick);
	}
}

static void segment_base(struct crema_thread *t, const struct boundary *b)
{
	t->base_tick = b->tick;
	t->base_cpu_ns = b->cpu_ns;
	t->base_runqueue_ns = b->runqueue_ns >= 0 ? (uint64_t)b->runqueue_ns : 0;
	t->base_inblock = b->inblock;
	t->base_oublock = b->oublock;
	t->base_nvcsw = b->nvcsw;
	t->base_nivcsw = b->nivcsw;
}

static void move(uint64_t *from, uint64_t *to, uint64_t *total)
{
	uint64_t v = *from;

	if (!v)
		return;
	*from = 0;
	if (to)
		ADD(to, v);
	ADD(total, v);
}

/* Moves the block's counts to their owner. `folding` is set meanwhile: a process that dies in these
 * few nanoseconds leaves a block whose numbers may be in both places, and the agent says so. */
static void fold(struct crema_thread *t)
{
	struct crema_totals *totals = &crema_shm->totals;
	struct crema_task *task = task_slot(t->owner);
	uint64_t *total_time = t->owner == OWNER_NONE ? totals->unattributed.time
			       : t->is_pool	      ? totals->tasks_pool_time
						      : totals->tasks.time;
	uint64_t *total_count =
		t->owner == OWNER_NONE ? totals->unattributed.count : totals->tasks.count;
	uint64_t *task_time = !task ? NULL : t->is_pool ? task->pool_time : task->own.time;

	__atomic_store_n(&t->folding, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	thread_flush_file(t);
	for (int i = 0; i < CREMA_TIMES; i++)
		move(&t->seg.time[i], task_time ? &task_time[i] : NULL, &total_time[i]);
	for (int i = 0; i < CREMA_COUNTS; i++)
		move(&t->seg.count[i], task ? &task->own.count[i] : NULL, &total_count[i]);
	if (task && task_is_done(t->owner))
		__atomic_fetch_add(&task->version, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&t->folding, 0, __ATOMIC_RELEASE);
}

static void segment_switch(struct crema_thread *t, uint32_t owner, uint32_t is_pool)
{
	struct boundary b;

	runqueue_settle(t);
	boundary_take(&b);
	if (t->owner != OWNER_NONE)
		segment_charge(t, &b);
	memset(&touched, 0, sizeof(touched));
	fold(t);
	segment_base(t, &b);
	t->is_pool = is_pool;
	__atomic_store_n(&t->owner, owner, __ATOMIC_RELEASE);
}

struct owner segment_begin(uint32_t owner, uint32_t is_pool)
{
	struct crema_thread *t = thread_self();
	struct owner before = {OWNER_NONE, 0};

	if (!t)
		return before;
	before.owner = t->owner;
	before.is_pool = t->is_pool;
	segment_switch(t, owner, is_pool);
	return before;
}

void segment_end(struct owner before)
{
	struct crema_thread *t = thread_self();

	if (t)
		segment_switch(t, before.owner, before.is_pool);
}

uint32_t segment_owner(void)
{
	struct crema_thread *t = thread_self();

	return t ? t->owner : OWNER_NONE;
}

uint32_t segment_span(void)
{
	struct crema_task *task = task_slot(segment_owner());

	return task ? task->span : 0;
}

/* pthread_key_create and pthread_setspecific lie in libpthread before glibc 2.34: found, not bound.
 */
static int (*key_create)(unsigned int *, void (*)(void *));
static int (*set_specific)(unsigned int, const void *);
static unsigned int key;
static int have_key;

static void at_thread_end(void *unused)
{
	(void)unused;
	if (shim_armed())
		thread_leave();
}

void thread_key_make(void)
{
	if (have_key)
		return;
	key_create =
		(int (*)(unsigned int *, void (*)(void *)))real_find("pthread_key_create", NULL);
	set_specific = (int (*)(unsigned int, const void *))real_find("pthread_setspecific", NULL);
	have_key = key_create && set_specific && !key_create(&key, at_thread_end);
}

void thread_enter(void)
{
	struct crema_thread *t = thread_self();

	if (t && have_key)
		set_specific(key, t);
}

static void release(struct crema_thread *t, uint64_t cpu_ns, uint64_t inblock, uint64_t oublock)
{
	struct crema_totals *totals = &crema_shm->totals;

	ADD(&totals->exited_cpu_ns, cpu_ns - t->armed_cpu_ns);
	ADD(&totals->exited_inblock, inblock - t->armed_inblock);
	ADD(&totals->exited_oublock, oublock - t->armed_oublock);
	__atomic_store_n(&t->tid, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&t->state, 0, __ATOMIC_RELEASE);
}

void thread_leave(void)
{
	struct crema_thread *t = thread_block;
	struct boundary b;

	if (!t)
		return;
	thread_disinherit();
	segment_switch(t, OWNER_NONE, 0);
	boundary_take(&b);
	thread_block = NULL;
	release(t, b.cpu_ns, b.inblock, b.oublock);
}

void thread_reap(struct crema_thread *t)
{
	fold(t);
	t->owner = OWNER_NONE;
	release(t, t->now_cpu_ns, t->now_inblock, t->now_oublock);
}
