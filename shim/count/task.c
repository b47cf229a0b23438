/* SPDX-License-Identifier: BSD-3-Clause */
/* task.c - slots of task attempts. */
#define _GNU_SOURCE
#include "shim/count/task.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unseen_io.h"
#include "shim/count/kept_file.h"
#include "shim/libc/sys.h"

#define NAME_SLOT_BITS 16

static __thread uint64_t thread_sequence;

#define STATM "/proc/self/statm"
static struct kept_file statm;

void task_memory_keep(void)
{
	kept_file_open(&statm, STATM);
}

uint64_t task_rss_bytes(void)
{
	char buf[96], *p = buf;
	long n = kept_file_read(&statm, STATM, buf, sizeof(buf));
	uint64_t v = 0;

	if (n <= 0)
		return 0;
	while (*p >= '0' && *p <= '9')
		p++;
	while (*p == ' ')
		p++;
	for (; *p >= '0' && *p <= '9'; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	return v * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t vm_hwm_bytes(void)
{
	char buf[2048], *p;
	uint64_t kib = 0;

	p = sys_slurp("/proc/self/status", buf, sizeof(buf)) > 0 ? strstr(buf, "\nVmHWM:") : NULL;
	for (p = p ? p + 7 : NULL; p && (*p == ' ' || *p == '\t');)
		p++;
	for (; p && *p >= '0' && *p <= '9'; p++)
		kib = kib * 10 + (uint64_t)(*p - '0');
	return kib * 1024;
}

static uint64_t usage_max_rss_bytes(uint64_t *faults)
{
	struct rusage ru;

	memset(&ru, 0, sizeof(ru));
	SYS2(SYS_getrusage, RUSAGE_SELF, &ru);
	*faults = (uint64_t)ru.ru_minflt + (uint64_t)ru.ru_majflt;
	return (uint64_t)ru.ru_maxrss * 1024;
}

/* The peak in getrusage includes the time before exec(), which a fork or vfork takes from the
 * parent: for a worker whose parent is a large program it is never exceeded. Up to that peak only
 * /proc/self/status, at 15 times the cost, has the program's own. Memory grows by page faults: if
 * there was none since the last read, the last value is still valid. (The kernel may also join
 * pages to a larger one; that is seen after the next fault.) */
static uint64_t inherited_max_rss;
static __thread struct {
	uint64_t faults, bytes; /* 0 bytes: not read yet */
} own_max;

void task_forget(void)
{
	thread_sequence = 0;
	own_max.bytes = 0;
}

void task_memory_begins(void)
{
	uint64_t faults, max = usage_max_rss_bytes(&faults);

	inherited_max_rss = max > vm_hwm_bytes() ? max : 0;
	own_max.bytes = 0;
	kept_file_drop(&statm);
}

uint64_t task_max_rss_bytes(void)
{
	uint64_t faults, max = usage_max_rss_bytes(&faults);

	if (max > inherited_max_rss)
		return max;
	if (!own_max.bytes || own_max.faults != faults) {
		own_max.faults = faults;
		own_max.bytes = vm_hwm_bytes();
	}
	return own_max.bytes;
}

static uint32_t claim_slot(void)
{
	static uint32_t hint;
	uint32_t start = ADD(&hint, 1);

	for (uint32_t i = 0; i < CREMA_SHM_TASKS; i++) {
		uint32_t at = (start + i) % CREMA_SHM_TASKS, none = CREMA_SLOT_FREE;

		if (LOAD(&crema_shm->slot_word[at]))
			continue;
		if (__atomic_compare_exchange_n(&crema_shm->slot_word[at], &none,
						CREMA_SLOT_CLAIMED + CREMA_SLOT_REF, 0,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return at + 1;
	}
	return OWNER_REFUSED;
}

void task_counts_unknown(uint64_t name, uint64_t counts)
{
	uint32_t owner = task_ref_name(name);
	struct crema_task *t = task_slot(owner);

	if (t)
		__atomic_fetch_or(&t->count_unknown, counts, __ATOMIC_RELAXED);
	task_unref(owner);
}

void task_counts_hidden(uint64_t name, uint64_t counts)
{
	task_counts_unknown(name, counts);
	__atomic_fetch_or(&crema_shm->totals.count_unknown, counts, __ATOMIC_RELAXED);
}

static uint64_t uncounted;
static uint32_t lost_flags;

void tasks_running_cannot_count(uint64_t counts, uint32_t flags)
{
	for (uint32_t i = 0; shim_armed() && i < CREMA_SHM_TASKS; i++) {
		uint32_t state = CREMA_SLOT_STATE(LOAD(&crema_shm->slot_word[i]));

		if (state != CREMA_SLOT_RUNNING)
			continue;
		__atomic_fetch_or(&crema_shm->task[i].count_unknown, counts, __ATOMIC_RELAXED);
		if (flags)
			__atomic_fetch_or(&crema_shm->task[i].flags, flags, __ATOMIC_RELAXED);
	}
}

void tasks_cannot_count(uint64_t counts, uint32_t flags)
{
	__atomic_fetch_or(&uncounted, counts, __ATOMIC_RELAXED);
	__atomic_fetch_or(&lost_flags, flags, __ATOMIC_RELAXED);
	tasks_running_cannot_count(counts, flags);
}

static uint32_t untimed;

void tasks_cannot_time(uint32_t times)
{
	untimed |= times;
}

uint32_t task_open(void)
{
	uint32_t owner = claim_slot();
	struct crema_task *t = task_slot(owner);
	struct crema_thread *self = thread_self();

	ADD(&crema_shm->totals.tasks_started, 1);
	thread_sequence++;
	if (!t) {
		ADD(&crema_shm->totals.tasks_refused, 1);
		return owner;
	}
	memset(t, 0, sizeof(*t));
	t->count_unknown = uncounted | crema_unseen_io_counts(crema_shm);
	t->flags = lost_flags;
	t->time_unknown = untimed;
	t->attempt = ADD(&crema_shm->next_attempt, 1) + 1;
	t->thread_sequence = thread_sequence;
	t->tid = self ? self->tid : (uint32_t)sys_gettid();
	t->rss_start_bytes = task_rss_bytes();
	if (t->rss_start_bytes)
		t->known |= CREMA_KNOWN_RSS_START;
	t->rss_peak_bytes = task_max_rss_bytes();
	return owner;
}

static uint64_t begun;

uint64_t tasks_begun(void)
{
	return __atomic_load_n(&begun, __ATOMIC_ACQUIRE);
}

/* Upper bound for reading two clocks without preemption, also where each is a system call. */
#define EDGE_READING_NS 5000u

/* Both clocks as they were at this tick. The counter is read first: an edge is never too early, and
 * a task that has not ended while its start is read never ends before it. */
static void edge_at(uint64_t tick, uint64_t *boot_ns, uint64_t *mono_ns)
{
	uint64_t began, since_ns;
	int times = 0;

	do {
		began = ticks();
		*boot_ns = clock_ns(CLOCK_BOOTTIME);
		*mono_ns = clock_ns(CLOCK_MONOTONIC);
	} while (unlikely(ticks_ns(ticks() - began) > EDGE_READING_NS) && ++times < 3);
	since_ns = ticks_ns(began - (tick ? tick : began));
	*boot_ns -= since_ns;
	*mono_ns -= since_ns;
}

void task_running(uint32_t owner)
{
	struct crema_task *t = task_slot(owner);
	struct crema_thread *self = thread_self();

	if (!t)
		return;
	edge_at(self && self->owner == owner ? self->base_tick : 0, &t->start_boot_ns,
		&t->start_mono_ns);
	__atomic_store_n(&crema_shm->slot_word[owner - 1], CREMA_SLOT_RUNNING + CREMA_SLOT_REF,
			 __ATOMIC_RELEASE);
	__atomic_fetch_add(&begun, 1, __ATOMIC_RELEASE);
}

void task_stopped(uint32_t owner, uint64_t tick)
{
	struct crema_task *t = task_slot(owner);

	if (t)
		edge_at(tick, &t->stop_boot_ns, &t->stop_mono_ns);
}

void task_close(uint32_t owner, uint32_t status)
{
	struct crema_task *t = task_slot(owner);
	uint32_t *word = &crema_shm->slot_word[owner - 1], old, next;
	uint64_t peak;

	ADD(&crema_shm->totals.tasks_done, 1);
	if (!t)
		return;
	t->rss_stop_bytes = task_rss_bytes();
	if (t->rss_stop_bytes)
		t->known |= CREMA_KNOWN_RSS_STOP;
	peak = task_max_rss_bytes();
	if (peak > t->rss_peak_bytes)
		t->known |= CREMA_KNOWN_RSS_PEAK;
	t->rss_peak_bytes = peak;
	/* With read-ahead, the pages of a mapped file are charged without one of the faults that
	 * are counted. */
	if (t->own.count[CREMA_C_major_faults] ||
	    (t->own.count[CREMA_C_mapped_bytes] && t->own.count[CREMA_C_storage_read_bytes]))
		t->flags |= CREMA_TASK_FAULT_STORAGE;
	t->status = status;
	old = __atomic_load_n(word, __ATOMIC_RELAXED);
	do
		next = (old & ~0xffu) - CREMA_SLOT_REF + CREMA_SLOT_DONE;
	while (!__atomic_compare_exchange_n(word, &old, next, 0, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED));
}

void task_ref(uint32_t owner)
{
	if (task_slot(owner))
		ADD(&crema_shm->slot_word[owner - 1], CREMA_SLOT_REF);
}

void task_unref(uint32_t owner)
{
	if (task_slot(owner))
		__atomic_fetch_sub(&crema_shm->slot_word[owner - 1], CREMA_SLOT_REF,
				   __ATOMIC_RELEASE);
}

uint64_t task_name(uint32_t owner)
{
	struct crema_task *t = task_slot(owner);

	return t ? t->attempt << NAME_SLOT_BITS | owner : owner;
}

uint32_t task_name_owner(uint64_t name)
{
	return (uint32_t)(name & ((1u << NAME_SLOT_BITS) - 1));
}

uint32_t task_ref_name(uint64_t name)
{
	uint32_t owner = task_name_owner(name);
	struct crema_task *t = task_slot(owner);
	uint32_t *word, old;

	if (!t)
		return owner == OWNER_REFUSED ? OWNER_REFUSED : OWNER_NONE;
	word = &crema_shm->slot_word[owner - 1];
	old = __atomic_load_n(word, __ATOMIC_RELAXED);
	do
		if (CREMA_SLOT_STATE(old) < CREMA_SLOT_RUNNING)
			return OWNER_NONE;
	while (!__atomic_compare_exchange_n(word, &old, old + CREMA_SLOT_REF, 0, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED));
	if (t->attempt == name >> NAME_SLOT_BITS)
		return owner;
	task_unref(owner);
	return OWNER_NONE;
}

void task_add(uint32_t owner, int id, uint64_t n)
{
	struct crema_task *task = task_slot(owner);

	if (owner == OWNER_NONE) {
		ADD(&crema_shm->totals.unattributed.count[id], n);
		return;
	}
	ADD(&crema_shm->totals.tasks.count[id], n);
	if (!task)
		return;
	ADD(&task->own.count[id], n);
	if (task_is_done(owner))
		__atomic_fetch_add(&task->version, 1, __ATOMIC_RELEASE);
}

void task_time_unknown(uint32_t owner, int time_id)
{
	struct crema_task *t = task_slot(owner);

	if (t)
		__atomic_fetch_or(&t->time_unknown, 1u << time_id, __ATOMIC_RELAXED);
}

void task_unblocked(uint32_t owner)
{
	struct crema_task *t = task_slot(owner);

	if (owner == OWNER_NONE)
		return;
	STORE(&crema_shm->totals.tasks_unblocked, 1);
	if (!t)
		return;
	__atomic_fetch_or(&t->time_unknown, (1u << CREMA_TIMES) - 1, __ATOMIC_RELAXED);
	__atomic_fetch_or(&t->count_unknown, ~UINT64_C(0), __ATOMIC_RELAXED);
	STORE(&t->unblocked, 1);
	if (task_is_done(owner))
		__atomic_fetch_add(&t->version, 1, __ATOMIC_RELEASE);
}

void task_unseen_name(uint64_t name)
{
	uint32_t owner;

	if (!name || !thread_refused.yes || thread_hidden)
		return;
	owner = task_ref_name(name);
	task_unblocked(owner);
	task_unref(owner);
}
