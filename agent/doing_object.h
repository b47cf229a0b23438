/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doing_object.h - what a thread of the worker waits for, in terms that a user understands.
 *
 * A descriptor becomes the path of its file or the address of its peer (/proc/PID/fd, /proc/PID/net
 * and, for a path that was passed to open(), the worker's memory). What cannot be found stays
 * empty. Texts of the worker are cut, not trusted. One thread.
 */
#ifndef CREMA_AGENT_DOING_OBJECT_H
#define CREMA_AGENT_DOING_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/view.h"

struct doing_object {
	char call[32];	  /* "": in none that is known */
	const char *kind; /* as in contract/rows.def; NULL: unknown, or none */
	char text[256];	  /* "": unknown */
};

struct crema_thread;

/* The call of the shim's word, which is not 0. */
void doing_object_of_word(struct doing_object *o, const struct view *v, int pid,
			  const struct crema_thread *t);
/* The system call that the thread is in according to /proc; false: it runs, or the kernel does not
 * report it. *place: a hash of number, arguments and stack pointer. */
bool doing_object_of_kernel(struct doing_object *o, const struct view *v, int pid, uint32_t tid,
			    uint64_t *place);
/* Copies from the worker's memory; returns how many bytes from the start could be read. */
size_t doing_memory(int pid, uint64_t address, void *to, size_t bytes);

#endif
