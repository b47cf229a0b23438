/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * harness.h - for test programs that are linked with the shim's objects: the executable's wrappers
 * precede libc's, so every call here is really interposed, and the test can arm the process, open
 * tasks and read the shared memory.
 */
#ifndef CREMA_TESTS_SHIM_HARNESS_H
#define CREMA_TESTS_SHIM_HARNESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shim/shim.h"
#include "shim/count/large.h"
#include "shim/count/task.h"
#include "shim/count/thread.h"

/* Arms this process once and removes the file immediately. */
void harness_arm(void);
/* The same as a group's setup. */
int harness_setup(void **state);

/* A task in the calling thread. */
struct harness_task {
	uint32_t owner;
	struct owner before;
	uint64_t start_ns;
};
/* The task's counts that are unknown, except memory in a process whose malloc is a sanitizer's. */
static inline uint64_t unknown_counts(const struct crema_task *t)
{
#ifdef LARGE_INTERPOSED
	return t->count_unknown;
#else
	return t->count_unknown &
	       ~(CREMA_COUNT_BIT(large_allocated_bytes) | CREMA_COUNT_BIT(large_freed_bytes));
#endif
}

struct harness_task harness_begin(void);
/* Ends the task and returns the slot, whose numbers are final. */
struct crema_task *harness_end(struct harness_task *h);
/* What the agent does once the record is acknowledged. */
void harness_free(struct harness_task *h);

/* Both ends of a new connection over the loopback; *server was accepted. */
void harness_connect(int *client, int *server);

/* How many descriptors have a file whose name ends so; *last: one of them. */
unsigned int harness_descriptors_of(const char *end, int *last);

uint64_t harness_wall_ns(const struct crema_task *t);
uint64_t harness_now_ns(void);
/* Uses CPU for `ns` of this thread's CPU clock. */
void harness_spin(uint64_t ns);
/* Makes the calling thread run on this core only. */
void harness_pin(int cpu);
/* A file of `bytes` in the folder CREMA_TEST_TMP (a real disk), otherwise in the current folder
 * (tests/run-programs runs the program in the build folder). */
const char *harness_file(const char *name, size_t bytes);
/* Drops its pages from the page cache; returns the number of bytes that a full read will load. */
size_t harness_make_cold(const char *path);

#endif
