/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doing_stack.h - the Python stack of a thread of the worker as text, and the line in it that a
 * user recognizes: the innermost one that is neither a library's nor the interpreter's own.
 */
#ifndef CREMA_AGENT_DOING_STACK_H
#define CREMA_AGENT_DOING_STACK_H

#include "agent/py_stack.h"
#include "common/view.h"

#define DOING_FRAMES 16u
#define DOING_FRAME_BYTES 200u

struct doing_stack {
	uint64_t place;		      /* a hash of the line's function; 0: unknown */
	char line[DOING_FRAME_BYTES]; /* "/home/me/analysis.py:42 fetch"; "": unknown */
	size_t frames;		      /* innermost first; deeper ones are left out */
	char frame[DOING_FRAMES][DOING_FRAME_BYTES]; /* the same */
};

/* The worker's Python, as the shim recorded it; its memory is read by *pid. */
struct py_process doing_python(const struct view *v, int *pid);

/* thread_state: as the shim recorded it, 0: it runs no Python. */
void doing_stack_read(struct doing_stack *s, const struct view *v, int pid, uint64_t thread_state,
		      uint32_t tid);

/* py_stack_entry() of the worker's thread. */
uint64_t doing_stack_entry(const struct view *v, int pid, uint64_t thread_state, uint32_t tid);

/* "FILE:LINE FUNCTION", the file redacted if required; line 0: unknown. */
void doing_stack_text(char out[DOING_FRAME_BYTES], const struct view *v, const char *file, int line,
		      const char *function);

#endif
