/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shim.h - state that the shim's files share, and the rules they follow.
 *
 * Armed: a process counts only between shim_arm() and its end. `crema_armed` points to a word in a
 * page that the kernel wipes in a forked child, so a child is dormant at once, without a handler. A
 * vfork child shares the page: code that may run there compares getpid() with the stored pid.
 *
 * In an intercepted call: no lock, no allocation, no stdio, errno as the real call left it. In any
 * doubt the call passes through and shim_note() leaves the reason in shared memory.
 */
#ifndef CREMA_SHIM_SHIM_H
#define CREMA_SHIM_SHIM_H

#include <stdint.h>

#include "shm.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define ADD(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define LOAD(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

extern struct crema_shm *crema_shm;
extern const volatile uint32_t *crema_armed;

static inline int shim_armed(void)
{
	return unlikely(*crema_armed);
}

/* How often this process, or one that it was forked from, was armed. Work that began under another
 * epoch must not be ended under this one. */
extern uint32_t shim_epoch;

/* 1 if this is the process that armed; 0 in a vfork child. */
int shim_same_process(void);

/*
 * Creates the shared memory and arms this process. 0, or -errno with one line in *why (static
 * text). Called once, with the GIL held, from the worker's start.
 */
int shim_arm(const char **why);

/* Undoes shim_arm() when nothing will read the shared memory: removes its file and stops counting.
 * The mapping stays because other threads may be using it. */
void shim_disarm(void);

/* Leaves a reason for the agent to report; each text is kept once. */
void shim_note(const char *text);

/* Prints one line "crema: text" to descriptor 2; only at a worker's bootstrap. */
void shim_say(const char *text, const char *detail);

/* Stores numbers of the whole process at one instant in crema_shm->snapshot. Any thread, not in an
 * intercepted call. */
void shim_snapshot(void);

/* The shim has waited for a child that it started itself, whose resources these are: it is not
 * counted. */
struct rusage;
void shim_leave_out_child(const struct rusage *ru);

/* Path of the shared memory file. */
const char *shim_path(void);

/* 1 if CREMA=off, or if there was a reason to stay out of this process. */
extern int shim_off;

/* arena.c: id of a text in shared memory; 0 if it is empty or the arena is full. Lock-free. */
uint32_t arena_id(const char *text, uint32_t bytes);
/* The same for texts of which there may be any number: they leave room for the others. */
uint32_t arena_bulk_id(const char *text, uint32_t bytes);
uint64_t arena_hash(const char *text, uint32_t bytes);
const char *arena_text(uint32_t id);

/* agent.c: starts the agent program; 0 or -errno (-ENOTSUP: it would become this process's child).
 */
int agent_start(const char *collector);
/* Path of the agent program that was found, or the last one tried. */
const char *agent_path(void);
/* agent.c: checks the agent's heartbeat and starts another agent if it is dead. */
void agent_watch(void);

/* 1 if this thread is the one that fills a free row; the row's state is 1 from then on. */
static inline int row_claim(uint32_t *state)
{
	uint32_t none = 0;

	return __atomic_load_n(state, __ATOMIC_ACQUIRE) == 0 &&
	       __atomic_compare_exchange_n(state, &none, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
}

/* Waits briefly for a row that another thread is filling (state 1; 2 = ready). That takes a few
 * stores, so the wait has a small limit. */
static inline int row_ready(const uint32_t *state)
{
	for (int i = 0; i < 1000; i++)
		if (__atomic_load_n(state, __ATOMIC_ACQUIRE) == 2)
			return 1;
	return 0;
}

#endif
