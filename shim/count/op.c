/* SPDX-License-Identifier: BSD-3-Clause */
/* op.c - brackets around calls that may block. */
#define _GNU_SOURCE
#include "shim/count/op.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "shim/count/blocked.h"
#include "shim/count/byte_sample.h"
#include "shim/count/clock.h"
#include "shim/count/extent.h"
#include "shim/count/fd.h"
#include "shim/count/net.h"
#include "shim/count/packed.h"
#include "shim/count/runqueue.h"
#include "shim/count/task.h"
#include "shim/libc/sys.h"

/* This many of the thread's next calls are bracketed: a recent one waited. */
static __thread uint32_t slow;

/* Only the kernel has the storage charges. */
static uint64_t charges_at(uint64_t *inblock, uint64_t *switches)
{
	struct rusage ru;
	uint64_t turn = clock_usage(&ru);

	*inblock = (uint64_t)ru.ru_inblock;
	*switches = (uint64_t)ru.ru_nvcsw + (uint64_t)ru.ru_nivcsw;
	return turn;
}

void op_bracket(struct op *op, int time_id)
{
	int times = 0;

	op->bracketed = 1;
	do {
		op->start = ticks();
		op->turn = op->charges ? charges_at(&op->inblock, &op->switches) : clock_turn();
		runqueue_wait_begins(op->t, time_id, op->turn);
		/* after the query, which costs CPU */
		op->cpu_ns = clock_cpu_ns();
	} while (runqueue_read_again(op->start, &times));
	op->start = ticks();
}

struct op_end op_end(const struct op *op)
{
	uint64_t elapsed, cpu, inblock = 0, switches = 0;
	struct op_end e = {0};
	int was_switched, times = 0;

	do {
		e.tick = ticks();
		e.cpu_ns = clock_cpu_ns();
		e.turn = op->charges ? charges_at(&inblock, &switches) : clock_turn();
	} while (runqueue_read_again(e.tick, &times));
	elapsed = ticks_ns(e.tick - op->start);
	cpu = clock_cpu_between(op->cpu_ns, e.cpu_ns);
	if (op->charges) {
		e.storage_bytes = (inblock - op->inblock) * 512;
		was_switched = switches != op->switches;
	} else {
		was_switched = e.turn != op->turn || elapsed > CLOCK_KEPT_NS;
	}
	e.gross_ns = was_switched && elapsed > cpu ? elapsed - cpu : 0;
	return e;
}

/* Waited ns of a bracketed call, and the storage bytes charged to it. */
static uint64_t op_waited(struct op *op, uint64_t *storage_bytes)
{
	struct op_end e = op_end(op);

	*storage_bytes = e.storage_bytes;
	if (!e.gross_ns)
		return 0;
	return e.gross_ns - runqueue_of_wait(op->t, &e);
}

/* A slow call without a bracket: what has happened since the last check is put on this call, so the
 * wait is never too large. In the same turn it was not a wait at all. */
static uint64_t waited_unbracketed(struct op *op, uint64_t elapsed_ns)
{
	struct op_end e = {.gross_ns = elapsed_ns, .tick = ticks()};

	e.turn = clock_turn();
	if (runqueue_looked_at(e.turn))
		return 0;
	return elapsed_ns - runqueue_of_wait(op->t, &e);
}

/* Brackets a call that is likely to block; its task also sees a pool thread's call. */
static void bracket_call(struct op *op)
{
	struct crema_task *task = op->t->is_pool ? task_slot(op->t->owner) : NULL;

	if (task && op->kind != FD_OTHER) {
		op->pool_of = task;
		overlap_enter(task, op->kind == FD_SOCKET ? CREMA_OVERLAP_NETWORK
							  : CREMA_OVERLAP_STORAGE);
	}
	op->charges = op->kind == FD_DATA || op->kind == FD_IMPORT;
	op_bracket(op, -1);
}

static void leave_call(struct op *op, uint64_t waited)
{
	if (op->pool_of)
		overlap_leave(op->pool_of,
			      op->kind == FD_SOCKET ? CREMA_OVERLAP_NETWORK : CREMA_OVERLAP_STORAGE,
			      waited);
}

void read_begin(struct op *op, int fd, size_t size)
{
	struct fd_info info;
	int is_file;

	op->t = thread_self();
	if (unlikely(!op->t)) {
		file_owner_unseen(fd);
		net_unseen(fd);
		blocked_reads(fd);
		position_ask(fd);
		return;
	}
	info = fd_lookup(fd);
	op->file_owner.owner = OWNER_NONE;
	if (unlikely(info.kind == FD_UNKNOWN)) {
		op->t = NULL;
		return;
	}
	if (unlikely(op->t->owner == OWNER_NONE && info.kind == FD_DATA)) {
		file_owner_begin(&op->file_owner, fd);
		info = fd_lookup(fd); /* its row is of the owner's span */
	}
	op->kind = info.kind;
	op->row = info.row;
	op->opened = info.opened;
	op->unsure = info.unsure;
	op->pool_of = NULL;
	op->bracketed = 0;
	is_file = info.kind == FD_DATA || info.kind == FD_IMPORT;
	if (is_file) {
		struct crema_task *task = task_slot(op->t->owner);

		if (task && !(LOAD(&task->fs_mask) >> info.filesystem & 1))
			__atomic_fetch_or(&task->fs_mask, 1u << info.filesystem, __ATOMIC_RELAXED);
	}
	if (unlikely(slow || (is_file && (size >= OP_LARGE_BYTES || info.unsure))))
		bracket_call(op);
	else
		op->start = ticks();
}

static void count_file(const struct op *op, long bytes)
{
	struct crema_thread *t = op->t;

	if (t->file_row != op->row || t->file_opened != op->opened) {
		thread_flush_file(t);
		t->file_row = op->row;
		t->file_opened = op->opened;
		if (likely(op->row))
			STORE(&crema_shm->file[op->row - 1].was_read, 1);
		segment_touches(op->row);
	}
	t->file_read_calls += 1;
	t->file_read_bytes += (uint64_t)bytes;
}

static int io_class(const struct op *op)
{
	return op->kind == FD_SOCKET  ? CREMA_T_network_wait
	       : op->kind == FD_OTHER ? CREMA_T_lock_wait
				      : CREMA_T_storage_wait;
}

/* Returns the storage bytes charged in a bracketed call. */
static uint64_t read_slow(struct op *op, int fd, uint64_t elapsed_ns)
{
	struct blocked_on on = {CREMA_ON_FILE, op->row, fd, NULL};
	uint64_t storage = 0, waited;
	struct crema_file *f;

	if (op->bracketed)
		waited = op_waited(op, &storage);
	else
		waited = waited_unbracketed(op, elapsed_ns);
	leave_call(op, waited);
	slow = waited > OP_SLOW_NS ? OP_ALERT_CALLS : slow - (slow > 0);
	op->t->seg.time[io_class(op)] += waited;
	if (op->unsure)
		op->t->seg.count[CREMA_C_storage_unsure_bytes] += storage;
	f = op->row ? &crema_shm->file[op->row - 1] : NULL;
	if (f) {
		ADD(&f->storage_wait_ns, waited);
		ADD(&f->storage_read_bytes, storage);
		segment_charged(storage);
	}
	if (op->opened)
		ADD(&crema_shm->opened[op->opened - 1].storage_wait_ns, waited);
	if (op->kind == FD_SOCKET || op->kind == FD_OTHER)
		on.on = op->kind == FD_SOCKET ? CREMA_ON_SOCKET : CREMA_ON_OTHER;
	blocked_saw(op->t, io_class(op), waited, &on);
	return storage;
}

/* A bracketed read: which part came from the page cache, and what storage returned in addition. */
static void count_large(const struct op *op, long result, uint64_t storage)
{
	uint64_t *count = op->t->seg.count, returned = result > 0 ? (uint64_t)result : 0;
	uint64_t cached = returned > storage ? returned - storage : 0;
	uint64_t beyond = storage > returned ? storage - returned : 0;
	struct crema_file *f;

	if (!op->bracketed || op->kind != FD_DATA || !op->row)
		return;
	f = &crema_shm->file[op->row - 1];
	count[CREMA_C_large_read_bytes] += returned;
	count[CREMA_C_cached_bytes] += cached;
	count[CREMA_C_readahead_bytes] += beyond;
	ADD(&f->large_read_bytes, returned);
	ADD(&f->cached_bytes, cached);
	ADD(&f->readahead_bytes, beyond);
}

static void read_counts(struct op *op, int fd, int64_t offset, long result)
{
	uint64_t *count = op->t->seg.count;

	if (likely(op->kind == FD_DATA)) {
		count[CREMA_C_read_calls] += 1;
		count[CREMA_C_read_bytes] += (uint64_t)result;
		byte_sample(op->t, CREMA_LINES_B_read, (uint64_t)result, NULL);
		if (op->t->is_pool && task_slot(op->t->owner) && task_is_done(op->t->owner))
			count[CREMA_C_late_bytes] += (uint64_t)result;
		count_file(op, result);
		if (likely(result > 0))
			extent_read(op->t, fd, offset, (uint64_t)result);
	} else if (op->kind == FD_IMPORT) {
		count[CREMA_C_import_read_calls] += 1;
		count[CREMA_C_import_read_bytes] += (uint64_t)result;
		count_file(op, result);
	} else if (op->kind == FD_SOCKET) {
		net_received(fd, (uint64_t)result);
	} else if (op->kind == FD_OTHER) {
		count[CREMA_C_other_read_calls] += 1;
		count[CREMA_C_other_read_bytes] += (uint64_t)result;
	}
}

void read_end(struct op *op, int fd, int64_t offset, long result)
{
	uint64_t elapsed = ticks_ns(ticks() - op->start);
	int saved = errno;

	if (unlikely(op->bracketed || elapsed > OP_SLOW_NS))
		count_large(op, result, read_slow(op, fd, elapsed));
	if (result >= 0)
		read_counts(op, fd, offset, result);
	if (unlikely(op->file_owner.owner != OWNER_NONE))
		file_owner_end(&op->file_owner);
	errno = saved;
}

void write_begin(struct op *op, int fd)
{
	struct fd_info info;

	op->t = thread_self();
	position_ask(fd);
	if (unlikely(!op->t)) {
		net_unseen(fd);
		return;
	}
	info = fd_lookup(fd);
	op->kind = info.kind;
	op->row = info.row;
	op->opened = info.opened;
	if (info.kind == FD_SOCKET)
		net_send_binds(fd);
	else if (info.kind != FD_DATA && info.kind != FD_IMPORT)
		op->t = NULL;
	else if (unlikely(info.packed))
		packed_written(op->t->owner);
	op->start = ticks();
}

void write_count(const struct op *op, uint64_t calls, uint64_t bytes)
{
	op->t->seg.count[CREMA_C_write_calls] += calls;
	op->t->seg.count[CREMA_C_write_bytes] += bytes;
	if (op->row) {
		ADD(&crema_shm->file[op->row - 1].write_calls, calls);
		ADD(&crema_shm->file[op->row - 1].write_bytes, bytes);
	}
	if (op->opened)
		ADD(&crema_shm->opened[op->opened - 1].write_bytes, bytes);
}

void sync_count(const struct op *op)
{
	op->t->seg.count[CREMA_C_sync_calls]++;
}

void write_end(struct op *op, int fd, long result, struct sent sent)
{
	if (result < 0)
		return;
	if (op->kind == FD_SOCKET) {
		if (result)
			net_sent(fd, (uint64_t)result, sent, op->start);
		return;
	}
	position_ask(fd);
	write_count(op, 1, (uint64_t)result);
}

void socket_begin(struct op *op, int fd)
{
	op->t = thread_self();
	if (unlikely(!op->t)) {
		net_unseen(fd);
		return;
	}
	op->kind = fd_lookup(fd).kind;
	if (unlikely(op->kind == FD_UNKNOWN)) {
		op->t = NULL;
		return;
	}
	op->row = op->opened = 0;
	op->unsure = 0;
	op->bracketed = 0;
	op->pool_of = NULL;
	/* what a pool thread receives may be what its task waits for */
	if ((slow || op->t->is_pool) && op->t->owner != OWNER_NONE)
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

static void socket_waited(struct op *op, int fd)
{
	uint64_t elapsed = ticks_ns(ticks() - op->start);
	int saved = errno;

	if (op->t->owner != OWNER_NONE && (op->bracketed || elapsed > OP_SLOW_NS))
		read_slow(op, fd, elapsed);
	errno = saved;
}

void recv_end(struct op *op, int fd, long result)
{
	socket_waited(op, fd);
	if (result >= 0 && op->kind == FD_SOCKET)
		net_received(fd, (uint64_t)result);
}

void send_end(struct op *op, int fd, long result, struct sent sent)
{
	socket_waited(op, fd);
	if (result > 0 && op->kind == FD_SOCKET)
		net_sent(fd, (uint64_t)result, sent, op->start);
}
