/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stacks.h - records of long waits: MODULE and STACK messages.
 *
 * Takes what is ready out of shared memory and frees it. Addresses become (module, offset in its
 * file), Python frames a row of LINES; a module and a row are sent before the first stack that
 * names them. At most STACKS_PER_SECOND are sent;
 * gaps in the numbers show how many are missing. One thread.
 */
#ifndef CREMA_AGENT_STACKS_H
#define CREMA_AGENT_STACKS_H

#include "agent/modules.h"
#include "agent/outbox.h"
#include "agent/pylines.h"
#include "common/view.h"

#define STACKS_PER_SECOND 100u

struct stacks {
	const struct view *view;
	struct outbox *out;
	struct pylines *lines;
	int pid;
	struct modules modules;
	uint64_t second_ns; /* when `sent` was last 0 */
	unsigned int sent;
};

/* lines: NULL: Python frames are left out. */
void stacks_init(struct stacks *s, const struct view *v, struct outbox *out, struct pylines *lines,
		 int pid);
void stacks_release(struct stacks *s);
void stacks_poll(struct stacks *s, uint64_t mono_ns);

#endif
