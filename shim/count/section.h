/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * section.h - sections that a task's own code names, and values that it records.
 *
 *	token = section_begin("jet_selection", 13); ... section_end(token);
 *
 * A section belongs to the task and to the thread that opened it; it nests in what that thread has
 * open, so its path is "outer/inner" ("/" and "\" in a name are escaped with a "\"). At both ends
 * the thread's segment is cut, so that all it counted is in the task's slot.
 *
 * - Opened by the task's own thread: what the whole task counted between begin and end. This
 *   includes its pool threads: a piece of their work counts in full if it ends within the section,
 *   else not at all.
 * - Opened by a thread that works for the task: what that thread counted. It is part of the former.
 *
 * All numbers are inclusive. A section that is not ended before an outer one, the task or the piece
 * of work is "broken" and not measured: generators and coroutines that were suspended inside.
 * Without a known task nothing is measured, only counted.
 *
 * The caller holds the GIL, which is the only lock of the tables and of the list of what is open;
 * armed process only.
 */
#ifndef CREMA_SHIM_COUNT_SECTION_H
#define CREMA_SHIM_COUNT_SECTION_H

#include "shim/count/thread.h"

#define SECTION_DEPTH 16u
#define SECTION_NAME_BYTES 128u /* of a name; the rest is cut off */
#define SECTION_PATH_BYTES 512u

struct section_open;

/* A token for the end; 0: not measured. name NULL: the name has no text. memory: measures the
 * resident set, not time and bytes. */
uint64_t section_begin(const char *name, size_t bytes, int memory);
void section_end(uint64_t token);
/* Records a value of the task; non-finite ones are only counted. */
void section_value(const char *name, size_t bytes, double value);

/* What another instrument has measured and the task has returned, for the task with this slot: an
 * execution of a section, the change of resident memory in one, a value (flags:
 * CREMA_SECTION_BYTES: its bytes). Finite numbers only. */
struct crema_task;
void section_found(const struct crema_task *task, const char *name, size_t bytes, uint64_t wall_ns);
void section_found_memory(const struct crema_task *task, const char *name, size_t bytes,
			  double delta);
void section_found_value(const struct crema_task *task, const char *name, size_t bytes,
			 uint32_t flags, double value);

/* Another task, or another piece of work, begins in this thread: returns what was open, which is
 * hidden until section_leave(). What the inner one has left open is broken. */
struct section_open *section_enter(void);
void section_leave(struct section_open *before);

/* A forked child: nothing is open. */
void section_forget(void);

#endif
