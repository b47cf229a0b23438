/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * byte_sample.h - which Python stacks read and receive bytes: samples by the byte; and which wait
 * long.
 *
 * On the way of each thread's bytes lie points at irregular distances, the further the faster its
 * bytes come. A call that passes points is a sample: the row of its stack and kind of task gets the
 * sum of the distances that end there. So samples add up to the bytes before the last point, and a
 * call of many distances is counted almost exactly. Bytes between points cost a subtraction.
 *
 * A pool thread's stack is followed by the one that handed it its work: byte_sample_keep() keeps
 * that in private memory, where later ones replace it. A number stands for the stack, and for
 * nothing once the stack has been replaced.
 *
 * If no row is free, the task's next sample stands for these bytes, too, and its spread is as wide;
 * at the task's end they are lost. Readers know the exact number of bytes, and show the difference.
 *
 * Each wait longer than the threshold (blocked.h) is added to the row of its stack and class; if no
 * row is free, to one of the spare rows, which have no stack.
 *
 * Any thread; no lock, no allocation, no system call, errno untouched.
 */
#ifndef CREMA_SHIM_COUNT_BYTE_SAMPLE_H
#define CREMA_SHIM_COUNT_BYTE_SAMPLE_H

#include "shim/count/thread.h"

/* Stores the calling thread's Python frames, innermost first, and returns how many; *cut: there are
 * more. NULL: this Python's frames cannot be read. */
extern uint32_t (*byte_sample_walk)(struct crema_py_frame *frame, uint32_t most, uint32_t *cut);

/* A task that another thread serves, and the stack that requested the bytes (byte_sample_keep(); 0:
 * unknown). */
struct byte_request {
	uint64_t task; /* its name */
	uint32_t stack;
};

/* of: NULL: t's own task, and stack. */
void byte_sample_take(struct crema_thread *t, enum crema_lines_byte kind, uint64_t bytes,
		      const struct byte_request *of);

/* A long wait of t's task has ended. Returns the hash of the row with its stack; 0: none. */
uint64_t byte_sample_wait(const struct crema_thread *t, int time_id, uint64_t waited_ns);

/* t has read or received these bytes. */
static inline void byte_sample(struct crema_thread *t, enum crema_lines_byte kind, uint64_t bytes,
			       const struct byte_request *of)
{
	if (likely(bytes < t->byte_left[kind]))
		t->byte_left[kind] -= bytes;
	else
		byte_sample_take(t, kind, bytes, of);
}

/* The calling thread's stack, followed by the one that handed it its work: at most CREMA_BYTE_DEPTH
 * frames. *cut: there are more. */
uint32_t byte_sample_stack(const struct crema_thread *t, struct crema_py_frame *frame,
			   uint32_t *cut);
/* Of a stack of tasks of that span, prefix and dataset; never 0. */
uint64_t byte_sample_hash(const struct crema_task *task, uint32_t pool,
			  const struct crema_py_frame *frame, uint32_t depth);

/* For a forked child, whose tasks' attempts are numbered as its parent's were. */
void byte_sample_forget(void);

/* Keeps the calling thread's stack, and returns its number; 0: none. GIL held. */
uint32_t byte_sample_keep(void);
/* The calling thread's work was handed to it from there; returns what was before. */
uint32_t byte_sample_submitter(uint32_t number);

#endif
