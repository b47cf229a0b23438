/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_stack.h - the Python stack of one thread of another process, by reading its memory.
 *
 * The process does nothing for it and is not stopped, so what is read may change meanwhile or be
 * garbage: each object's type is checked, lengths and depth are bounded, and a chain of frames
 * counts only if a second read returns the same. By contract/pythons.def: old versions by a table
 * of their layouts, newer ones by the offsets at the start of _PyRuntime. Pure functions over
 * `read`, no allocation.
 */
#ifndef CREMA_AGENT_PY_STACK_H
#define CREMA_AGENT_PY_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/py_layout.h"
#include "shm.h"

#define PY_FRAMES 128 /* deeper stacks are cut */
#define PY_NAME_BYTES 128
#define PY_FILE_BYTES 256

struct py_process {
	/* Copies from the process; returns how many bytes from the start could be read. */
	size_t (*read)(void *arg, uint64_t address, void *to, size_t bytes);
	/* This many bytes at each of n addresses, at once; false: not all of them. May be NULL. */
	bool (*read_all)(void *arg, const uint64_t *address, size_t n, void *to, size_t bytes);
	void *arg;
	uint32_t version; /* as crema_shm.python_version */
	uint64_t runtime; /* address of _PyRuntime */
	uint64_t code_type, unicode_type, bytes_type;
	struct py_layout layout; /* set by the first walk; minor 0: not yet */
};

struct py_frame {
	uint64_t frame, code, instruction; /* addresses; of 3.10 an index */
	uint32_t check;			   /* py_code_check() of its code object */
	uint64_t key;			   /* equal if py_stack_name() would return the same */
};

/* The frames of a thread state, innermost first; tid: of the thread, if its state contains it, or 0
 * for any thread. 0: none, unknown, or the thread changes them too fast. */
size_t py_stack_walk(struct py_process *p, uint64_t thread_state, uint32_t tid,
		     struct py_frame frame[PY_FRAMES]);
/* The same for a thread that keeps running: if inner frames changed meanwhile, the outer ones that
 * did not. *whole: the number of frames including those. */
size_t py_stack_sample(struct py_process *p, uint64_t thread_state, uint32_t tid,
		       struct py_frame frame[PY_FRAMES], size_t *whole);
/* An address in the stack frame of the C function that runs the innermost Python frame; 0: unknown.
 * For a thread that waits. */
uint64_t py_stack_entry(struct py_process *p, uint64_t thread_state, uint32_t tid);
/* True if this interpreter's layout is known. */
bool py_stack_knows(struct py_process *p);
/* The frame that the shim recorded. */
struct py_frame py_stack_frame(const struct py_process *p, const struct crema_py_frame *recorded);
/* Names of a frame of a walk, UTF-8, cut; line 0: unknown. False: its code object is another one by
 * now. */
bool py_stack_name(const struct py_process *p, const struct py_frame *frame,
		   char function[PY_NAME_BYTES], char file[PY_FILE_BYTES], int *line);

/* The interpreter lock, found through the condition variable on which a thread waits for it. */
struct py_gil {
	uint64_t holder;   /* a thread state */
	uint64_t switches; /* how often it has changed hands */
};
/* False: not such a condition variable, or no thread holds the lock now. */
bool py_gil_read(const struct py_process *p, uint64_t cond, struct py_gil *gil);

#endif
