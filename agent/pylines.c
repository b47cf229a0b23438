/* SPDX-License-Identifier: BSD-3-Clause */
/* pylines.c - samples the threads of tasks. pylines_send.c sends the results. */
#include "agent/pylines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "agent/doing_object.h"
#include "agent/doing_stack.h"
#include "agent/pylines_class.h"
#include "common/procfs.h"
#include "common/clock.h"
#include "contract/calls.h"

static bool read_objects(void *pid, const uint64_t *address, size_t n, void *to, size_t bytes)
{
	struct iovec local = {to, n * bytes}, remote[PY_FRAMES];

	if (n > PY_FRAMES)
		return false;
	for (size_t i = 0; i < n; i++)
		remote[i] = (struct iovec){(void *)(uintptr_t)address[i], bytes};
	return process_vm_readv(*(int *)pid, &local, 1, remote, n, 0) == (ssize_t)(n * bytes);
}

static unsigned int wanted_hz(void)
{
	const char *text = getenv("CREMA_SAMPLE_HZ");
	unsigned long hz;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return PYLINES_HZ;
	hz = strtoul(text, &end, 10);
	return *end || hz > PYLINES_HZ ? PYLINES_HZ : (unsigned int)hz;
}

void pylines_init(struct pylines *l, const struct view *v, struct outbox *out, int pid)
{
	memset(l, 0, sizeof(*l));
	l->view = v;
	l->out = out;
	l->pid = pid;
	l->hz = wanted_hz();
	l->state = l->hz ? "waiting" : "off";
	l->interval_ns = l->hz ? 1000000000u / l->hz : 0;
	/* The first sample opens files and reads names: it does not predict the cost of later
	 * ones. */
	l->cost_ns = (uint64_t)((double)l->interval_ns * PYLINES_SHARE);
	l->table_id = out->stream;
	l->random = out->stream | 1;
	l->clocks = true;
	for (size_t i = 0; i < CREMA_SHM_THREADS; i++)
		l->thread[i].stat_fd = l->thread[i].sched_fd = -1;
}

static void forget_thread(struct pylines_thread *t)
{
	if (t->stat_fd >= 0)
		close(t->stat_fd);
	if (t->sched_fd >= 0)
		close(t->sched_fd);
	memset(t, 0, sizeof(*t));
	t->stat_fd = t->sched_fd = -1;
}

void pylines_release(struct pylines *l)
{
	for (size_t i = 0; l->view && i < CREMA_SHM_THREADS; i++)
		forget_thread(&l->thread[i]);
	free(l->table);
	l->table = NULL;
}

/* True if the worker's memory can be read and its Python is known. Checked until it is. */
static bool is_ready(struct pylines *l)
{
	const struct crema_shm *m = l->view->shm;
	uint64_t word;

	if (l->table || !l->hz)
		return l->hz != 0;
	if (!__atomic_load_n(&m->python_version, __ATOMIC_ACQUIRE) || !m->python_runtime)
		return false;
	l->process = doing_python(l->view, &l->pid);
	l->process.read_all = read_objects;
	/* The worker allows it to this process, and may be about to. */
	if (doing_memory(l->pid, m->python_runtime, &word, sizeof(word)) != sizeof(word)) {
		l->state = errno == EPERM || errno == ENOSYS ? "refused" : "unreadable";
		return false;
	}
	if (!py_stack_knows(&l->process)) {
		l->state = "unknown Python";
		l->hz = 0;
		return false;
	}
	l->table = calloc(1, sizeof(*l->table));
	l->state = l->table ? "on" : l->state;
	return l->table != NULL;
}

/* Threads */

static void open_thread(struct pylines *l, struct pylines_thread *t, uint32_t tid)
{
	char path[64];

	forget_thread(t);
	t->tid = tid;
	snprintf(path, sizeof(path), "/proc/%d/task/%u/stat", l->pid, tid);
	t->stat_fd = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/task/%u/schedstat", l->pid, tid);
	t->sched_fd = open(path, O_RDONLY | O_CLOEXEC);
}

/* 0: it has ended, or the kernel does not report it. */
static char state_of(const struct pylines_thread *t)
{
	char text[256];
	ssize_t n = t->stat_fd >= 0 ? pread(t->stat_fd, text, sizeof(text) - 1, 0) : -1;

	text[n > 0 ? n : 0] = '\0';
	return procfs_state_in(text);
}

/* What its clocks have counted in this task since the last sample; false: the kernel does not
 * report it. */
static bool read_clocks(struct pylines_thread *t, uint64_t attempt, uint64_t look)
{
	char text[96];
	ssize_t n = t->sched_fd >= 0 ? pread(t->sched_fd, text, sizeof(text) - 1, 0) : -1;
	bool goes_on = t->attempt == attempt && t->look + 1 == look;
	uint64_t cpu, runqueue;

	text[n > 0 ? n : 0] = '\0';
	if (!procfs_schedstat_in(text, &cpu, &runqueue))
		return false;
	t->ran_ns = goes_on && cpu >= t->cpu_ns ? t->ran_ns + cpu - t->cpu_ns : 0;
	t->queued_ns = goes_on && runqueue >= t->runqueue_ns
			       ? t->queued_ns + runqueue - t->runqueue_ns
			       : 0;
	t->cpu_ns = cpu;
	t->runqueue_ns = runqueue;
	t->attempt = attempt;
	t->look = look;
	return true;
}

/* own: the task whose own thread it is; NULL: a pool's. */
static unsigned int class_of(struct pylines *l, struct pylines_thread *t,
			     const struct crema_thread *at, const struct crema_task *own)
{
	uint64_t word, start;

	if (!crema_call_read(&at->call, &at->call_start, &word, &start))
		return PYLINE_OTHER;
	if (t->word != word || t->word_start != start) {
		t->class = (uint8_t)pylines_class(l->view, l->pid, own, word);
		t->word = word;
		t->word_start = start;
		t->lock.known = false;
	}
	return t->class;
}

/* Whether it can be known who holds what a call waits for. */
static bool has_holder(unsigned int class, uint32_t call)
{
	return class == CREMA_T_gil_wait ||
	       (class == CREMA_T_lock_wait &&
		(call == CREMA_CALL_pthread_mutex_lock || pylines_is_semaphore(call)));
}

static void look_at(struct pylines *l, uint32_t i, const struct crema_task *task, uint64_t ns)
{
	const struct crema_thread *at = &l->view->shm->thread[i];
	struct pyline_row like = {.span = task->span,
				  .prefix = task->prefix,
				  .dataset = task->dataset,
				  .pool = __atomic_load_n(&at->is_pool, __ATOMIC_RELAXED) != 0};
	uint64_t python = __atomic_load_n(&at->python, __ATOMIC_RELAXED);
	uint32_t tid = __atomic_load_n(&at->tid, __ATOMIC_RELAXED);
	struct pylines_thread *t = &l->thread[i];
	struct pyline_row *r;
	unsigned int class;
	bool told, cut;
	char state;

	if (t->tid != tid)
		open_thread(l, t, tid);
	told = read_clocks(t, task->attempt, l->look);
	state = state_of(t);
	if (!state) { /* it has ended, which does not affect the kernel's clocks */
		forget_thread(t);
		return;
	}
	l->clocks = l->clocks && told;
	class = state == 'R' ? CREMA_T_cpu : class_of(l, t, at, like.pool ? NULL : task);
	if (has_holder(class, crema_call_of(t->word)))
		pylines_waits(l, &(struct pylines_waiter){.object = crema_call_object(t->word),
							  .ns = ns,
							  .span = like.span,
							  .thread = i,
							  .wait = class,
							  .call = crema_call_of(t->word)});
	r = pylines_row(l, &like, python, tid, &cut);
	t->row = r;
	t->row_look = l->look;
	if (!r)
		return;
	r->samples[class]++;
	r->ns[class] += ns;
	r->cut += cut;
	r->changed = true;
	if (class != CREMA_T_cpu)
		return;
	r->clock_cpu_ns += t->ran_ns;
	r->clock_runqueue_ns += t->queued_ns;
	t->ran_ns = t->queued_ns = 0;
}

/* Samples all threads of tasks; false: there is none. */
static bool look_at_all(struct pylines *l, uint64_t gap_ns, uint64_t mono_ns)
{
	struct crema_task task;
	uint64_t ns, age;
	uint32_t word, owner;
	bool any = false;

	l->waiters = 0;
	for (uint32_t i = 0; i < CREMA_SHM_THREADS; i++) {
		const struct crema_thread *t = &l->view->shm->thread[i];

		owner = __atomic_load_n(&t->owner, __ATOMIC_ACQUIRE);
		if (!owner || owner > CREMA_SHM_TASKS ||
		    __atomic_load_n(&t->state, __ATOMIC_ACQUIRE) != 1 ||
		    !view_task(l->view, owner - 1, &task, &word) ||
		    CREMA_SLOT_STATE(word) != CREMA_SLOT_RUNNING)
			continue;
		any = true;
		age = mono_ns > task.start_mono_ns ? mono_ns - task.start_mono_ns : 0;
		ns = gap_ns;
		if (ns > 2 * l->interval_ns && age < ns)
			ns = age > l->interval_ns ? age : l->interval_ns;
		look_at(l, i, &task, ns);
	}
	pylines_blame(l);
	return any;
}

/* Rate */

/* Uniform in [1/2, 3/2] of the mean, to avoid sampling periodic programs in step. */
static uint64_t jitter(struct pylines *l, uint64_t mean)
{
	l->random ^= l->random << 13;
	l->random ^= l->random >> 7;
	l->random ^= l->random << 17;
	return mean / 2 + l->random % (mean + 1);
}

static void set_rate(struct pylines *l, uint64_t cost_ns)
{
	uint64_t least = 1000000000u / l->hz, most;

	l->cost_ns = (7 * l->cost_ns + cost_ns) / 8;
	most = (uint64_t)((double)l->cost_ns / PYLINES_SHARE);
	l->interval_ns = most > least ? most : least;
	if (l->interval_ns > PYLINES_GAP_NS / 2)
		l->interval_ns = PYLINES_GAP_NS / 2;
}

uint64_t pylines_due(const struct pylines *l)
{
	return l->table && l->hz && l->busy_ns ? l->next_ns : UINT64_MAX;
}

void pylines_look(struct pylines *l, uint64_t mono_ns)
{
	uint64_t begin, gap;

	if (mono_ns < l->next_ns || !is_ready(l))
		return;
	pylines_bytes(l);
	pylines_large(l);
	gap = l->last_ns ? mono_ns - l->last_ns : l->interval_ns;
	gap = gap < PYLINES_GAP_NS ? gap : PYLINES_GAP_NS;
	begin = clock_thread_ns();
	l->last_ns = mono_ns;
	l->look++;
	if (look_at_all(l, gap, mono_ns)) {
		l->busy_ns = mono_ns;
		l->unsent = true;
		begin = clock_thread_ns() - begin;
		l->cpu_ns += begin;
		set_rate(l, begin);
	} else if (l->busy_ns && mono_ns - l->busy_ns > PYLINES_IDLE_NS) {
		l->busy_ns = 0;
	}
	l->next_ns = mono_ns + jitter(l, l->interval_ns);
}
