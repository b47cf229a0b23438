/* SPDX-License-Identifier: BSD-3-Clause */
/* op.c - brackets around calls that may block. */
#define _GNU_SOURCE
#include "op.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "fd.h"
#include "net.h"
#include "sys.h"
#include "task.h"

/* The run queue delay was `runqueue_ns` when the thread had been switched `switches` times: while
 * that count stands, the delay needs no new look. */
static __thread struct {
	uint64_t switches;
	int64_t runqueue_ns;
	uint32_t valid, slow;
} known;

static const char *runtime_start;
static size_t runtime_bytes;

void wait_set_runtime(const void *start, size_t bytes)
{
	runtime_start = start;
	runtime_bytes = bytes;
}

static void usage(uint64_t *switches, uint64_t *inblock)
{
	struct rusage ru;

	ru.ru_nvcsw = ru.ru_nivcsw = ru.ru_inblock = 0;
	SYS2(SYS_getrusage, 1 /* RUSAGE_THREAD */, &ru);
	*switches = (uint64_t)ru.ru_nvcsw + (uint64_t)ru.ru_nivcsw;
	*inblock = (uint64_t)ru.ru_inblock;
}

void op_bracket(struct op *op)
{
	op->bracketed = 1;
	usage(&op->switches, &op->inblock);
	if (!known.valid || known.switches != op->switches) {
		known.runqueue_ns = thread_runqueue_ns();
		known.switches = op->switches;
		known.valid = 1;
	}
	op->runqueue_ns = known.runqueue_ns;
	op->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	op->start = ticks();
}

uint64_t op_waited(struct op *op, uint64_t elapsed_ns, uint64_t *storage_bytes)
{
	uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - op->cpu_ns, switches, inblock, busy;

	usage(&switches, &inblock);
	*storage_bytes = (inblock - op->inblock) * 512;
	if (switches == op->switches)
		return 0;
	known.runqueue_ns = thread_runqueue_ns();
	known.switches = switches;
	busy = cpu;
	if (known.runqueue_ns > op->runqueue_ns && op->runqueue_ns >= 0)
		busy += (uint64_t)(known.runqueue_ns - op->runqueue_ns);
	return elapsed_ns > busy ? elapsed_ns - busy : 0;
}

/* A slow call without a bracket: what has happened since the last look is put on this call, so the
 * wait is never too large. Without any switch since then it was not a wait at all. */
static uint64_t waited_unbracketed(uint64_t elapsed_ns)
{
	uint64_t switches, inblock, delay = 0;
	int64_t runqueue;

	usage(&switches, &inblock);
	if (known.valid && switches == known.switches)
		return 0;
	runqueue = thread_runqueue_ns();
	if (known.valid && runqueue > known.runqueue_ns && known.runqueue_ns >= 0)
		delay = (uint64_t)(runqueue - known.runqueue_ns);
	known.runqueue_ns = runqueue;
	known.switches = switches;
	known.valid = 1;
	return elapsed_ns > delay ? elapsed_ns - delay : 0;
}

void wait_begin(struct op *op)
{
	struct crema_task *task;

	op->t = thread_self();
	if (!op->t || op->t->owner == OWNER_NONE) {
		op->t = NULL;
		return;
	}
	task = op->t->is_pool ? NULL : task_slot(op->t->owner);
	if (task)
		overlap_mark(task, &op->mark);
	op_bracket(op);
}

/* A lock wait, less what was really the pool's wait for storage or the network. */
static void charge_lock(struct op *op, uint64_t waited)
{
	struct crema_task *task = op->t->is_pool ? NULL : task_slot(op->t->owner);
	uint64_t *time = op->t->seg.time, part;

	if (task) {
		part = overlap_since(task, &op->mark, OVERLAP_STORAGE, waited);
		time[CREMA_T_storage_wait] += part;
		waited -= part;
		part = overlap_since(task, &op->mark, OVERLAP_NETWORK, waited);
		time[CREMA_T_network_wait] += part;
		waited -= part;
	}
	time[CREMA_T_lock_wait] += waited;
}

void wait_end(struct op *op, const void *object)
{
	uint64_t storage, waited = op_waited(op, ticks_ns(ticks() - op->start), &storage);
	size_t offset = (size_t)((const char *)object - runtime_start);

	if (runtime_start && offset < runtime_bytes)
		op->t->seg.time[CREMA_T_gil_wait] += waited;
	else
		charge_lock(op, waited);
}

void block_end(struct op *op, int time_id)
{
	uint64_t storage, waited = op_waited(op, ticks_ns(ticks() - op->start), &storage);

	if (time_id == CREMA_T_lock_wait)
		charge_lock(op, waited);
	else
		op->t->seg.time[time_id] += waited;
}

int wait_matters(void)
{
	struct crema_thread *t = thread_self();

	return t && t->owner != OWNER_NONE;
}

/* Brackets a call that is likely to block; a pool thread's is also seen by its task. */
static void bracket_call(struct op *op)
{
	struct crema_task *task = op->t->is_pool ? task_slot(op->t->owner) : NULL;

	if (task && op->kind != FD_OTHER) {
		op->pool_of = task;
		overlap_enter(task, op->kind == FD_SOCKET ? OVERLAP_NETWORK : OVERLAP_STORAGE);
	}
	op_bracket(op);
}

static void leave_call(struct op *op, uint64_t waited)
{
	if (op->pool_of)
		overlap_leave(op->pool_of,
			      op->kind == FD_SOCKET ? OVERLAP_NETWORK : OVERLAP_STORAGE, waited);
}

void read_begin(struct op *op, int fd, size_t size)
{
	struct fd_info info;
	int is_file;

	op->t = thread_self();
	if (unlikely(!op->t))
		return;
	info = fd_lookup(fd);
	op->kind = info.kind;
	op->row = info.row;
	op->unsure = info.unsure;
	op->pool_of = NULL;
	op->bracketed = 0;
	is_file = info.kind == FD_DATA || info.kind == FD_IMPORT;
	if (is_file) {
		struct crema_task *task = task_slot(op->t->owner);

		if (task && !(LOAD(&task->fs_mask) >> info.filesystem & 1))
			__atomic_fetch_or(&task->fs_mask, 1u << info.filesystem, __ATOMIC_RELAXED);
	}
	if (unlikely(known.slow || (is_file && (size >= OP_LARGE_BYTES || info.unsure))))
		bracket_call(op);
	else
		op->start = ticks();
}

static void count_file(struct crema_thread *t, uint32_t row, long bytes)
{
	if (t->file_row != row) {
		thread_flush_file(t);
		t->file_row = row;
		segment_touches(row);
	}
	t->file_read_calls += 1;
	t->file_read_bytes += (uint64_t)bytes;
}

static void read_slow(struct op *op, uint64_t elapsed_ns)
{
	uint64_t storage = 0, waited;
	struct crema_file *f;

	if (op->bracketed)
		waited = op_waited(op, elapsed_ns, &storage);
	else
		waited = waited_unbracketed(elapsed_ns);
	leave_call(op, waited);
	known.slow = waited > OP_SLOW_NS;
	op->t->seg.time[op->kind == FD_SOCKET  ? CREMA_T_network_wait
			: op->kind == FD_OTHER ? CREMA_T_lock_wait
					       : CREMA_T_storage_wait] += waited;
	if (op->unsure)
		op->t->seg.count[CREMA_C_storage_unsure_bytes] += storage;
	f = op->row ? &crema_shm->file[op->row - 1] : NULL;
	if (f) {
		ADD(&f->storage_wait_ns, waited);
		ADD(&f->storage_read_bytes, storage);
		segment_charged(storage);
	}
}

void read_end(struct op *op, int fd, long result)
{
	uint64_t elapsed = ticks_ns(ticks() - op->start), *count = op->t->seg.count;

	if (unlikely(op->bracketed || elapsed > OP_SLOW_NS)) {
		int saved = errno;

		read_slow(op, elapsed);
		errno = saved;
	}
	if (result < 0)
		return;
	if (likely(op->kind == FD_DATA)) {
		count[CREMA_C_read_calls] += 1;
		count[CREMA_C_read_bytes] += (uint64_t)result;
		count_file(op->t, op->row, result);
	} else if (op->kind == FD_IMPORT) {
		count[CREMA_C_import_read_calls] += 1;
		count[CREMA_C_import_read_bytes] += (uint64_t)result;
		count_file(op->t, op->row, result);
	} else if (op->kind == FD_SOCKET) {
		net_received(fd, (uint64_t)result);
	} else if (op->kind == FD_OTHER) {
		count[CREMA_C_other_read_calls] += 1;
		count[CREMA_C_other_read_bytes] += (uint64_t)result;
	}
}

void write_begin(struct op *op, int fd)
{
	struct fd_info info;

	op->t = thread_self();
	if (unlikely(!op->t))
		return;
	info = fd_lookup(fd);
	op->kind = info.kind;
	op->row = info.row;
	if (info.kind == FD_SOCKET)
		net_send_binds(fd);
	else if (info.kind != FD_DATA && info.kind != FD_IMPORT)
		op->t = NULL;
}

void write_end(struct op *op, int fd, long result)
{
	if (result < 0)
		return;
	if (op->kind == FD_SOCKET) {
		net_sent(fd, (uint64_t)result);
		return;
	}
	op->t->seg.count[CREMA_C_write_calls] += 1;
	op->t->seg.count[CREMA_C_write_bytes] += (uint64_t)result;
	if (op->row) {
		ADD(&crema_shm->file[op->row - 1].write_calls, 1);
		ADD(&crema_shm->file[op->row - 1].write_bytes, (uint64_t)result);
	}
}

void socket_begin(struct op *op, int fd)
{
	op->t = thread_self();
	if (unlikely(!op->t))
		return;
	op->kind = fd_lookup(fd).kind;
	op->row = 0;
	op->unsure = 0;
	op->bracketed = 0;
	op->pool_of = NULL;
	/* what a pool thread receives may be what its task waits for */
	if ((known.slow || op->t->is_pool) && op->t->owner != OWNER_NONE)
		bracket_call(op);
	else
		op->start = ticks();
}

void send_begin(struct op *op, int fd)
{
	socket_begin(op, fd);
	if (op->t && op->kind == FD_SOCKET)
		net_send_binds(fd);
}

static void socket_waited(struct op *op)
{
	uint64_t elapsed = ticks_ns(ticks() - op->start);
	int saved = errno;

	if (op->t->owner != OWNER_NONE && (op->bracketed || elapsed > OP_SLOW_NS))
		read_slow(op, elapsed);
	errno = saved;
}

void recv_end(struct op *op, int fd, long result)
{
	socket_waited(op);
	if (result > 0 && op->kind == FD_SOCKET)
		net_received(fd, (uint64_t)result);
}

void send_end(struct op *op, int fd, long result)
{
	socket_waited(op);
	if (result > 0 && op->kind == FD_SOCKET)
		net_sent(fd, (uint64_t)result);
}

void map_end(int fd, size_t length, int prot)
{
	struct crema_thread *t = thread_self();
	struct crema_task *task;
	struct fd_info info;

	if (!t || !(prot & PROT_READ) || prot & PROT_EXEC)
		return;
	info = fd_lookup(fd);
	if (info.kind != FD_DATA)
		return;
	t->seg.count[CREMA_C_mapped_bytes] += length;
	if (info.row) {
		ADD(&crema_shm->file[info.row - 1].mapped_bytes, length);
		segment_touches(info.row);
	}
	task = task_slot(t->owner);
	if (task)
		__atomic_fetch_or(&task->fs_mask, 1u << info.filesystem, __ATOMIC_RELAXED);
}
