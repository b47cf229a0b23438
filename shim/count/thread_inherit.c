/* SPDX-License-Identifier: BSD-3-Clause */
/* thread_inherit.c - threads that a task started (thread.h). */
#include "shim/count/task.h"

static __thread uint32_t inherited;

void thread_inherit(uint32_t owner)
{
	thread_disinherit();
	inherited = owner;
	segment_begin(owner, 1);
}

void thread_forget(void)
{
	inherited = OWNER_NONE;
	thread_block = NULL;
}

void thread_disinherit(void)
{
	struct owner nobody = {OWNER_NONE, 0};

	if (!shim_armed())
		inherited = OWNER_NONE; /* a forked child: it is the parent's */
	if (inherited == OWNER_NONE)
		return;
	segment_end(nobody);
	task_unref(inherited);
	inherited = OWNER_NONE;
}

void thread_woken(struct crema_thread *t)
{
	if (unlikely(inherited != OWNER_NONE) && t->owner == inherited && task_slot(inherited) &&
	    task_is_done(inherited))
		thread_disinherit();
}
