/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op.h - one intercepted call: what it did and whether it blocked.
 *
 * A call that returns at once costs two reads of the tick counter. A call is bracketed with the
 * thread's clocks (clock.h; 2 us more to read the run queue: runqueue.h explains when) when it is
 * likely to block: large reads, waits, and the small reads after a slow one. For a bracketed call
 *     wait = elapsed - CPU inside - run queue inside     (0 if the thread was never switched out)
 * and for a slow call that was not bracketed
 *     wait = elapsed - run queue since the last check    (this includes its own CPU, a few us)
 */
#ifndef CREMA_SHIM_COUNT_OP_H
#define CREMA_SHIM_COUNT_OP_H

#include <stddef.h>

#include "shim/count/exchange.h"
#include "shim/count/file_owner.h"
#include "shim/count/overlap.h"
#include "shim/count/thread.h"

#define OP_LARGE_BYTES 32768u /* reads from here up are always bracketed */
#define OP_SLOW_NS 20000u     /* an unbracketed call longer than this counts as having blocked */
#define OP_ALERT_CALLS 16u    /* the calls after one that waited are bracketed */

struct op {
	struct crema_thread *t; /* NULL: do not count */
	uint64_t start;		/* ticks */
	uint32_t bracketed;
	uint32_t charges;	    /* storage may be charged to it */
	uint32_t unsure;	    /* read of a file system whose charges are unproven */
	uint32_t row, kind, opened; /* as fd_info */
	int time_id;		    /* of a wait */
	uint32_t may_move;	    /* a wait whose class later calls may change (timer.h) */
	uint64_t cpu_ns, turn;
	uint64_t inblock, switches;   /* of a read that storage may be charged to */
	struct crema_task *pool_of;   /* a pool thread's call that may block, of this task */
	struct file_owner file_owner; /* a read of a file that another thread's task has opened */
	struct crema_task *waits_for; /* the task whose own thread waits, with its mark */
	struct overlap_mark mark;
};

/* Brackets a call; time_id: the class of a wait, -1: not known yet. */
void op_bracket(struct op *op, int time_id);
/* The thread's clocks at the end of a bracketed call. */
struct op_end {
	uint64_t gross_ns; /* elapsed - CPU inside; 0 if the thread was never switched out */
	uint64_t cpu_ns, turn, storage_bytes;
	uint64_t tick; /* of that end */
};
struct op_end op_end(const struct op *op);

/* wait.c. Blocking waits: on an object (its address shows whether it is the GIL), or of a known
 * class. */
void wait_begin(struct op *op, const void *object);
void block_begin(struct op *op, int time_id);
/* Ends both kinds, unless op->t is NULL: `result` is what the call returned. 1 if it blocked. */
int wait_end(struct op *op, int result);
/* The same for one on an object that another thread ends; errno is kept. */
void wait_end_woken(struct op *op, int result);
/* wait.c. A lookup of `host` (NULL: unknown): the calls it makes are not counted separately. */
void lookup_begin(struct op *op);
void lookup_end(struct op *op, const char *host);
/* Ends a wait for descriptors: how many are ready, and the class of those in the call (-1:
 * unknown). */
void poll_end(struct op *op, int result, int time_id);
/* 1 if a wait of the calling thread should be measured: it works for a task, or is the loop that
 * waits for a task's responses. */
int wait_matters(void);

/* A call that waited until a file was on disk. */
void sync_count(const struct op *op);

void socket_begin(struct op *op, int fd);
void send_begin(struct op *op, int fd);
void recv_end(struct op *op, int fd, long result);
void send_end(struct op *op, int fd, long result, struct sent sent);

void read_begin(struct op *op, int fd, size_t size);
/* `offset`: where it read, EXTENT_HERE: at the descriptor's position. */
void read_end(struct op *op, int fd, int64_t offset, long result);
void write_begin(struct op *op, int fd);
void write_end(struct op *op, int fd, long result, struct sent sent);
/* Of a write that has begun. */
void write_count(const struct op *op, uint64_t calls, uint64_t bytes);
void map_end(int fd, size_t length, int prot);

/* Memory of the interpreter's runtime: waits on objects in it are waits for the GIL. */
void wait_set_runtime(const void *start, size_t bytes);

#endif
