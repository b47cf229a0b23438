/* SPDX-License-Identifier: BSD-3-Clause */
/* loop.c - clocks of tasks and of loops, and the time that passed on both. */
#include "shim/count/loop.h"

#include "shim/count/fd.h"
#include "shim/count/task.h"
#include "shim/libc/sys.h"

#define WAITING (1ull << 63)

/* A moment on the clock of a task's lock waits (ticks) and on the clock of a loop (ns). */
struct moment {
	uint64_t lock_ticks, loop_ns;
};

/* Private memory, one row per slot. */
static struct request_task {
	uint64_t name;
	uint64_t clock; /* ticks of lock waits so far; with WAITING: that is now - clock */
	uint64_t ended; /* ticks of those that have ended */
	uint64_t of_last_ns, of_earlier_ns;
	struct moment received; /* last */
	uint32_t loop;		/* that received it */
	/* From the last receive to a later write nothing seemed to be under way; bytes on a socket
	 * with an earlier request show that something was. */
	struct moment gap;
	uint64_t gap_ns;
} tasks[CREMA_SHM_TASKS];

static struct request_socket {
	struct moment since; /* last write or receive */
	uint32_t loop;
	uint32_t unanswered; /* nothing received since the write */
} sockets[FD_TABLE];

static __thread uint64_t blocked_ns;
static __thread uint32_t loop; /* own thread id, once this thread has written for a task */

void loop_task_begins(uint32_t owner, uint64_t name)
{
	static const struct request_task fresh;

	if (owner - 1 >= CREMA_SHM_TASKS)
		return;
	tasks[owner - 1] = fresh;
	__atomic_store_n(&tasks[owner - 1].name, name, __ATOMIC_RELEASE);
}

void loop_lock_begins(uint32_t owner)
{
	uint64_t *clock = &tasks[owner - 1].clock;

	STORE(clock, WAITING | ((ticks() - LOAD(clock)) & ~WAITING));
}

void loop_lock_ends(uint32_t owner)
{
	uint64_t *clock = &tasks[owner - 1].clock, now = (ticks() - LOAD(clock)) & ~WAITING;

	STORE(&tasks[owner - 1].ended, now);
	STORE(clock, now);
}

int loop_answered(uint32_t owner)
{
	return LOAD(&tasks[owner - 1].of_last_ns) || LOAD(&tasks[owner - 1].of_earlier_ns);
}

void loop_take(uint32_t owner, uint64_t *of_last_ns, uint64_t *of_earlier_ns)
{
	struct request_task *task = &tasks[owner - 1];

	*of_last_ns = *of_earlier_ns = 0;
	if (LOAD(&task->of_last_ns))
		*of_last_ns = __atomic_exchange_n(&task->of_last_ns, 0, __ATOMIC_RELAXED);
	if (LOAD(&task->of_earlier_ns))
		*of_earlier_ns = __atomic_exchange_n(&task->of_earlier_ns, 0, __ATOMIC_RELAXED);
}

int loop_is_this_thread(void)
{
	return loop != 0;
}

void loop_waited(uint64_t ns)
{
	blocked_ns += ns;
}

static struct request_task *task_of(uint64_t name)
{
	uint32_t owner = task_name_owner(name);

	if (owner - 1 >= CREMA_SHM_TASKS)
		return NULL;
	return __atomic_load_n(&tasks[owner - 1].name, __ATOMIC_ACQUIRE) == name ? &tasks[owner - 1]
										 : NULL;
}

static struct moment now_of(const struct request_task *task)
{
	uint64_t clock = LOAD(&task->clock);
	struct moment m = {clock & WAITING ? (ticks() - clock) & ~WAITING : clock, blocked_ns};

	return m;
}

static struct moment later(struct moment a, struct moment b)
{
	if (a.lock_ticks < b.lock_ticks)
		a.lock_ticks = b.lock_ticks;
	if (a.loop_ns < b.loop_ns)
		a.loop_ns = b.loop_ns;
	return a;
}

/* ns that passed on both clocks. */
static uint64_t passed(struct moment from, struct moment to)
{
	uint64_t lock =
		to.lock_ticks > from.lock_ticks ? ticks_ns(to.lock_ticks - from.lock_ticks) : 0;
	uint64_t blocked = to.loop_ns > from.loop_ns ? to.loop_ns - from.loop_ns : 0;

	return lock < blocked ? lock : blocked;
}

void loop_wrote(int fd, uint64_t name)
{
	struct request_task *task = task_of(name);
	struct request_socket *s;

	if ((unsigned int)fd >= FD_TABLE)
		return;
	s = &sockets[fd];
	if (!task) {
		s->loop = 0;
		return;
	}
	if (!loop)
		loop = (uint32_t)sys_gettid();
	s->since = now_of(task);
	s->loop = loop;
	s->unanswered = 1;
}

static void add(struct request_task *task, struct moment from, uint64_t ns)
{
	uint64_t ended = LOAD(&task->ended), earlier;

	earlier = from.lock_ticks < ended ? ticks_ns(ended - from.lock_ticks) : 0;
	if (earlier > ns)
		earlier = ns;
	if (earlier)
		ADD(&task->of_earlier_ns, earlier);
	if (ns > earlier)
		ADD(&task->of_last_ns, ns - earlier);
}

void loop_received(int fd, uint64_t name, uint64_t bytes)
{
	struct request_task *task = loop && (unsigned int)fd < FD_TABLE ? task_of(name) : NULL;
	struct request_socket *s = &sockets[fd];
	struct moment now, from;

	if (!task || s->loop != loop || (!bytes && !s->unanswered))
		return;
	now = now_of(task);
	from = s->since;
	if (task->loop == loop) {
		if (task->gap_ns && from.loop_ns <= task->gap.loop_ns) {
			add(task, task->gap, task->gap_ns);
			task->gap_ns = 0;
		}
		if (passed(task->received, from)) {
			task->gap = task->received;
			task->gap_ns = passed(task->received, from);
		}
		from = later(from, task->received);
	}
	add(task, from, passed(from, now));
	task->received = s->since = now;
	task->loop = loop;
	s->unanswered = 0;
}
