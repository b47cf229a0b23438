/* SPDX-License-Identifier: BSD-3-Clause */
/* pylines_holder.c - which stack holds a lock while threads of tasks wait for it. */
#include "agent/pylines.h"
#include "common/clock.h"
#include "contract/calls.h"

/* glibc's pthread_mutex_t on every 64-bit machine: int lock; unsigned count; int owner. The owner
 * is stored after the lock was taken and cleared before it is released. Its thread's tid; 0: none.
 */
static uint32_t mutex_owner(const struct pylines *l, uint64_t mutex)
{
	uint32_t head[3];

	if (l->process.read(l->process.arg, mutex, head, sizeof(head)) != sizeof(head))
		return 0;
	return head[0] ? head[2] : 0;
}

/* Blocks of threads that may hold a lock: NULL, or with the thread's state in *python. */
static const struct crema_thread *thread_of(const struct pylines *l, uint32_t i, uint64_t *python)
{
	const struct crema_thread *t = &l->view->shm->thread[i];

	*python = __atomic_load_n(&t->python, __ATOMIC_RELAXED);
	return __atomic_load_n(&t->state, __ATOMIC_ACQUIRE) == 1 && *python ? t : NULL;
}

static void is_held_by(struct pylines_waiter *w, const struct crema_thread *t, uint64_t python)
{
	w->owner = __atomic_load_n(&t->tid, __ATOMIC_RELAXED);
	w->gil = (struct py_gil){.holder = python};
}

static void read_mutex(const struct pylines *l, struct pylines_waiter *w)
{
	uint32_t tid = mutex_owner(l, w->object);
	const struct crema_thread *t;
	uint64_t python;

	for (uint32_t i = 0; tid && i < CREMA_SHM_THREADS; i++) {
		t = thread_of(l, i, &python);
		if (!t || __atomic_load_n(&t->tid, __ATOMIC_RELAXED) != tid)
			continue;
		is_held_by(w, t, python);
		return;
	}
}

bool pylines_is_semaphore(uint32_t call)
{
	return call == CREMA_CALL_sem_wait || call == CREMA_CALL_sem_timedwait ||
	       call == CREMA_CALL_sem_clockwait;
}

static bool holds(struct pylines *l, uint32_t i, const struct py_lock *lock, uint64_t owner,
		  struct pylines_waiter *w)
{
	struct py_frame frame[PY_FRAMES];
	const struct crema_thread *t;
	size_t n, whole;
	uint64_t python;

	t = thread_of(l, i, &python);
	if (!t)
		return false;
	if (lock->stores_owner) {
		if (py_thread_ident(&l->process, python) != owner)
			return false;
	} else {
		/* A thread whose inner frames change does not wait for a condition. */
		n = py_stack_sample(&l->process, python, __atomic_load_n(&t->tid, __ATOMIC_RELAXED),
				    frame, &whole);
		if (!py_lock_is_within(&l->process, lock, frame, n))
			return false;
	}
	is_held_by(w, t, python);
	return true;
}

/* The lock of a wait that was not seen before. */
static void begin_wait(struct pylines *l, struct pylines_thread *t, const struct pylines_waiter *w)
{
	struct py_frame frame[PY_FRAMES];
	uint64_t python;
	size_t whole;

	t->lock = (struct pylines_lock){.known = true, .looks = 1};
	if (!thread_of(l, w->thread, &python) ||
	    !py_stack_sample(&l->process, python, t->tid, frame, &whole) ||
	    !py_lock_of(&l->process, w->object, frame, &t->lock.lock))
		t->lock.lock.object = 0;
}

/* Reads all threads' stacks to find a Lock's holder: in one sample of several, and for one lock. */
static bool search(struct pylines *l, struct pylines_lock *at, uint64_t owner,
		   struct pylines_waiter *w)
{
	if (!at->lock.stores_owner && (l->look < at->search_look || l->search_look == l->look))
		return false;
	if (!at->lock.stores_owner)
		l->search_look = l->look;
	for (uint32_t i = 0; i < CREMA_SHM_THREADS && !at->holder; i++)
		at->holder = holds(l, i, &at->lock, owner, w) ? i + 1 : 0;
	at->looks = at->holder ? 1 : 2 * at->looks;
	at->search_look = l->look + at->looks;
	return true;
}

static void find_lock(struct pylines *l, struct pylines_waiter *w)
{
	struct pylines_thread *t = &l->thread[w->thread];

	if (!t->lock.known)
		begin_wait(l, t, w);
	w->lock = t->lock.lock.object;
}

/* Whether the thread that was found to hold it does so now. */
static bool holds_still(struct pylines *l, struct pylines_waiter *w)
{
	const struct pylines_lock *at = &l->thread[w->thread].lock;

	return at->holder &&
	       holds(l, at->holder - 1, &at->lock, py_lock_owner(&l->process, &at->lock), w);
}

static bool read_lock(struct pylines *l, struct pylines_waiter *w)
{
	struct pylines_lock *at = &l->thread[w->thread].lock;
	uint64_t owner;

	if (!w->lock)
		return false;
	owner = py_lock_owner(&l->process, &at->lock);
	if (at->lock.stores_owner && !owner)
		return true;
	if (holds_still(l, w))
		return true;
	at->holder = 0;
	return search(l, at, owner, w);
}

/* Who holds it now; false: this sample cannot tell, and does not count. */
static bool read_holder(struct pylines *l, struct pylines_waiter *w)
{
	if (w->wait == CREMA_T_gil_wait)
		return py_gil_read(&l->process, w->object, &w->gil);
	w->owner = 0;
	w->gil = (struct py_gil){.holder = 0};
	if (pylines_is_semaphore(w->call))
		return read_lock(l, w);
	read_mutex(l, w);
	return true;
}

/* The waiter of the same lock among the first n, whose answer is this one's, too. NULL: none. */
static const struct pylines_waiter *peer_of(const struct pylines *l, const struct pylines_waiter *w,
					    size_t n)
{
	for (size_t i = 0; w->lock && i < n; i++)
		if (l->waiter[i].lock == w->lock && l->waiter[i].span == w->span)
			return &l->waiter[i];
	return NULL;
}

void pylines_waits(struct pylines *l, const struct pylines_waiter *waiter)
{
	struct pylines_waiter *w = &l->waiter[l->waiters];
	const struct pylines_waiter *peer;

	*w = *waiter;
	if (pylines_is_semaphore(w->call))
		find_lock(l, w);
	peer = peer_of(l, w, l->waiters);
	if (peer) {
		w->owner = peer->owner;
		w->gil = peer->gil;
		l->thread[w->thread].lock.holder = l->thread[peer->thread].lock.holder;
	}
	l->waiters += peer || read_holder(l, w);
}

/* Threads of tasks were already sampled. That may have been before one of them took a mutex, so its
 * stack is read again then. */
static struct pyline_row *row_of(struct pylines *l, const struct pylines_waiter *w)
{
	struct pyline_row like = {.span = w->span, .outside = true};
	bool cut;

	for (uint32_t i = 0; i < CREMA_SHM_THREADS; i++) {
		const struct crema_thread *t = &l->view->shm->thread[i];
		const struct pyline_row *r = l->thread[i].row;

		if (l->thread[i].row_look != l->look ||
		    __atomic_load_n(&t->python, __ATOMIC_RELAXED) != w->gil.holder)
			continue;
		if (!w->owner || !r)
			return l->thread[i].row;
		like = (struct pyline_row){.span = r->span,
					   .prefix = r->prefix,
					   .dataset = r->dataset,
					   .pool = r->pool};
		break;
	}
	return pylines_row(l, &like, w->gil.holder, w->owner, &cut);
}

static bool is_still_held(struct pylines *l, const struct pylines_waiter *w)
{
	struct pylines_waiter now = *w;

	return (w->lock ? holds_still(l, &now) : read_holder(l, &now)) && now.owner == w->owner &&
	       now.gil.holder == w->gil.holder && now.gil.switches == w->gil.switches;
}

static void remember(struct pylines *l, const struct pylines_waiter *w, struct pyline_row *r,
		     uint64_t boot_ns)
{
	struct pylines_thread *t = &l->thread[w->thread];

	t->held[t->held_next++ % PYLINES_HELD] =
		(struct pylines_held){.boot_ns = boot_ns,
				      .wait = w->wait,
				      .table = (uint32_t)l->table_id,
				      .row = r ? (uint32_t)(r - l->table->row) + 1 : 0};
}

/* The row of its holder; NULL: unknown, or it was not the same all the time. last: the waiter
 * before it whose holder is known, or NULL. */
static struct pyline_row *holders_row(struct pylines *l, const struct pylines_waiter *w,
				      const struct pylines_waiter *last)
{
	const struct pylines_waiter *peer = peer_of(l, w, (size_t)(w - l->waiter));
	struct pyline_row *r;

	if (peer)
		return peer->row;
	if (last && !last->owner && !w->owner && last->gil.holder == w->gil.holder &&
	    last->span == w->span)
		r = last->row;
	else
		r = row_of(l, w);
	return r && r->why == PYLINES_WHOLE && is_still_held(l, w) ? r : NULL;
}

void pylines_blame(struct pylines *l)
{
	const struct pylines_waiter *last = NULL;
	uint64_t boot_ns = l->waiters ? clock_boot_ns() : 0;

	for (size_t i = 0; i < l->waiters; i++) {
		struct pylines_waiter *w = &l->waiter[i];

		w->row = w->gil.holder ? holders_row(l, w, last) : NULL;
		remember(l, w, w->row, boot_ns);
		if (!w->row)
			continue;
		last = w;
		if (w->wait != CREMA_T_gil_wait)
			continue;
		w->row->held_samples++;
		w->row->held_ns += w->ns;
		w->row->changed = true;
	}
}

static bool is_within(const struct pylines *l, const struct pylines_held *h,
		      const struct pylines_wait *w)
{
	return h->boot_ns && h->boot_ns >= w->from_boot_ns && h->boot_ns <= w->to_boot_ns &&
	       h->wait == w->wait && h->table == (uint32_t)l->table_id;
}

struct pyline_row *pylines_held_by(struct pylines *l, const struct pylines_wait *w,
				   uint32_t *samples, uint32_t *of)
{
	const struct pylines_thread *t = l->thread;
	uint32_t most = 0;

	*samples = *of = 0;
	while (t < l->thread + CREMA_SHM_THREADS && t->tid != w->tid)
		t++;
	if (!w->tid || t == l->thread + CREMA_SHM_THREADS)
		return NULL;
	for (size_t i = 0; i < PYLINES_HELD; i++) {
		uint32_t n = 0;

		if (!is_within(l, &t->held[i], w))
			continue;
		++*of;
		for (size_t k = 0; k < PYLINES_HELD && t->held[i].row; k++)
			n += is_within(l, &t->held[k], w) && t->held[k].row == t->held[i].row;
		if (n > *samples) {
			*samples = n;
			most = t->held[i].row;
		}
	}
	return most ? &l->table->row[most - 1] : NULL;
}
