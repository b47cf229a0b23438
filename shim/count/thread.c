/* SPDX-License-Identifier: BSD-3-Clause */
/* thread.c - blocks of threads, from their start to their end. */
#define _GNU_SOURCE
#include "shim/count/thread.h"

#include <dirent.h>
#include <string.h>

#include "shim/count/blocked.h"
#include "shim/count/clock.h"
#include "shim/count/digits.h"
#include "shim/count/extent.h"
#include "shim/count/fd.h"
#include "shim/count/runqueue.h"
#include "shim/count/segment.h"
#include "shim/count/task.h"
#include "shim/libc/real.h"
#include "shim/libc/sys.h"

__thread struct crema_thread *thread_block;
__thread void *(*thread_routine)(void *);
uintptr_t thread_python_from, thread_python_to;
__thread int thread_hidden;

/* The blocks' tids, close together: a thread that searches for its block does not touch all of
 * them. */
static uint32_t tids[CREMA_SHM_THREADS];

/* The part of a thread's clocks that is already in the sums: a library may call us once more after
 * thread_leave(), and what the thread did before must not count twice. */
struct counted {
	uint64_t cpu_ns, inblock, oublock;
};
static __thread struct counted left;

__thread struct thread_refused thread_refused;
/* How many blocks were released: a thread without one searches again only after that. */
static uint32_t blocks_freed;

static void set_base(struct crema_thread *t, const struct counted *base)
{
	t->armed_cpu_ns = t->now_cpu_ns = base->cpu_ns;
	t->armed_inblock = t->now_inblock = base->inblock;
	t->armed_oublock = t->now_oublock = base->oublock;
}

static struct crema_thread *claim(uint32_t tid, const struct counted *base)
{
	uint32_t start = ADD(&crema_shm->next_thread, 1);

	for (uint32_t i = 0; i < CREMA_SHM_THREADS; i++) {
		struct crema_thread *t = &crema_shm->thread[(start + i) % CREMA_SHM_THREADS];

		if (!row_claim(&t->state))
			continue;
		set_base(t, base);
		t->extent_bytes = 0;
		t->extents_ended = 0;
		STORE(&t->call, 0); /* a thread that was cancelled in a call left it there */
		STORE(&t->about, 0);
		STORE(&t->python, 0);
		STORE(&tids[t - crema_shm->thread], tid);
		__atomic_store_n(&t->tid, tid, __ATOMIC_RELEASE);
		return t;
	}
	return NULL;
}

/* pthread_key_create and pthread_setspecific are in libpthread before glibc 2.34: found, not
 * bound. */
static int (*key_create)(unsigned int *, void (*)(void *));
static int (*set_specific)(unsigned int, const void *);
static unsigned int key;
static int have_key;

/* No block, and a search would find none. In the middle of a task it does not search: the task's
 * numbers are unknown already, and its rest would be counted as another's. */
static int stays_refused(void)
{
	return thread_refused.yes && (thread_refused.work.owner != OWNER_NONE ||
				      thread_refused.freed == LOAD(&blocks_freed));
}

static struct crema_thread *registered(uint32_t tid)
{
	for (uint32_t i = 0; i < CREMA_SHM_THREADS; i++) {
		struct crema_thread *t = &crema_shm->thread[i];

		if (LOAD(&tids[i]) == tid && LOAD(&t->state) == 1 && t->tid == tid)
			return t;
	}
	return NULL;
}

static void refuse(uint32_t freed)
{
	if (!thread_refused.yes)
		ADD(&crema_shm->totals.threads_refused, 1);
	thread_refused.yes = 1;
	thread_refused.freed = freed;
}

struct crema_thread *thread_adopt(void)
{
	uint32_t tid, freed;

	/* libunwind works for us in this thread, or a lookup is under way: neither is counted */
	if (blocked_unwinding || thread_hidden || stays_refused())
		return NULL;
	freed = __atomic_load_n(&blocks_freed, __ATOMIC_ACQUIRE);
	tid = (uint32_t)sys_gettid();
	runqueue_forget();
	clock_forget();
	thread_block = registered(tid);
	if (thread_block)
		return thread_block;
	thread_block = claim(tid, &left);
	if (unlikely(!thread_block))
		refuse(freed);
	else if (left.cpu_ns && have_key)
		set_specific(key, thread_block); /* it ends once more */
	return thread_block;
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
	char path[48] = "/proc/self/task/", buf[512];
	long got;

	memcpy(put_number(path + 16, tid, 10), "/io", 4);
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

	memset(tids, 0, sizeof(tids)); /* a forked child has its parent's */
	thread_refused = (struct thread_refused){0};
	if (fd < 0)
		return;
	while ((n = SYS3(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < n;) {
			/* struct linux_dirent64: ino 8, off 8, reclen 2, type 1, name */
			struct counted base = {0, 0, 0};
			uint16_t reclen;
			uint32_t tid;

			memcpy(&reclen, buf + at + 16, 2);
			number_of(buf + at + 19, &tid);
			if (tid) {
				base.cpu_ns = thread_cpu_ns(tid);
				thread_io(tid, &base.inblock, &base.oublock);
				claim(tid, &base);
			}
			at += reclen;
		}
	}
	sys_close(fd);
	thread_adopt();
}

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

static void release(struct crema_thread *t, const struct counted *now)
{
	struct crema_totals *totals = &crema_shm->totals;

	ADD(&totals->exited_cpu_ns, now->cpu_ns - t->armed_cpu_ns);
	ADD(&totals->exited_inblock, now->inblock - t->armed_inblock);
	ADD(&totals->exited_oublock, now->oublock - t->armed_oublock);
	STORE(&tids[t - crema_shm->thread], 0);
	__atomic_store_n(&t->tid, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&t->state, 0, __ATOMIC_RELEASE);
	__atomic_fetch_add(&blocks_freed, 1, __ATOMIC_RELEASE);
}

void thread_leave(void)
{
	struct crema_thread *t = thread_block;
	struct boundary b;

	runqueue_drop();
	if (!t)
		return;
	segment_last(t, &b);
	clock_end();
	thread_disinherit();
	thread_block = NULL;
	left = (struct counted){b.cpu_ns, b.inblock, b.oublock};
	release(t, &left);
}

int thread_reap(struct crema_thread *t, uint32_t tid)
{
	struct counted last;

	if (!__atomic_compare_exchange_n(&t->tid, &tid, 0, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return 0;
	segment_fold(t);
	t->owner = OWNER_NONE;
	last = (struct counted){t->now_cpu_ns, t->now_inblock, t->now_oublock};
	release(t, &last);
	return 1;
}
