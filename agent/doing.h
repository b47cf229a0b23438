/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doing.h - which call each thread of a running task is in, since when and on what: DOING messages.
 *
 * Once a second, for tasks that run for DOING_TASK_NS or more. The shim's word gives the call and
 * its start (contract/calls.h). Without one, /proc gives the system call, and only repeated reads
 * show how long it lasts. The object of a call is found from outside: the worker does no work for
 * it. The functions of C that it is in are looked up if it is in the same call at the next look,
 * too. At most DOING_ROWS rows, for the tasks that began first. One thread.
 */
#ifndef CREMA_AGENT_DOING_H
#define CREMA_AGENT_DOING_H

#include "agent/doing_object.h"
#include "agent/doing_stack.h"
#include "agent/native_stack.h"
#include "agent/outbox.h"
#include "common/view.h"

#define DOING_TASK_NS UINT64_C(1000000000)
#define DOING_AGAIN_NS UINT64_C(10000000000) /* the same is sent again */
#define DOING_ROWS 32u

struct doing_known {
	struct doing_object on;
	struct doing_stack stack;
	uint64_t kernel; /* a hash of a call that is not intercepted */
	uint32_t ticket; /* of native; 0: not asked for */
	bool tried;	 /* native was read */
	struct native_stack native;
};

/* What the previous reading found of a thread. */
struct doing_seen {
	uint64_t attempt, word, start; /* as the shim wrote them */
	uint64_t call_boot_ns;
	uint64_t place; /* a hash of call and object; 0: not seen */
	uint64_t place_boot_ns;
	struct doing_known *known; /* of that call; NULL: none yet */
};

struct doing_row {
	struct crema_task task;
	uint32_t tid;
	bool is_pool;
	const struct doing_known *known;
	uint64_t call_boot_ns, place_boot_ns; /* 0: unknown */
	char state[2], wchan[64];
};

struct doing {
	const struct view *view;
	struct outbox *out;
	int pid;
	bool off;	       /* CREMA_STUCK */
	struct doing_row *row; /* DOING_ROWS of them */
	size_t rows;
	uint64_t cut;
	struct doing_seen seen[CREMA_SHM_THREADS];
	struct native native;
	uint64_t sent, sent_ns; /* a hash of what was sent last; 0: nothing, or no rows */
	struct buf scratch;
};

/* 0 or -ENOMEM. */
int doing_init(struct doing *d, const struct view *v, struct outbox *out, int pid);
void doing_release(struct doing *d);
/* ticks: the counter that the shim reads, at boot_ns. */
void doing_look(struct doing *d, uint64_t ticks, uint64_t boot_ns);

#endif
