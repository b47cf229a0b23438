/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stacks.h - records of long waits: MODULE and STACK messages.
 *
 * Takes what is ready out of shared memory and frees it. Addresses become (module, offset in its
 * file); a module is sent before the first stack that names it. At most STACKS_PER_SECOND are sent;
 * gaps in the numbers show how many are missing. One thread.
 */
#ifndef CREMA_AGENT_STACKS_H
#define CREMA_AGENT_STACKS_H

#include "agent/modules.h"
#include "agent/outbox.h"
#include "common/view.h"

#define STACKS_PER_SECOND 100u

struct stacks {
	const struct view *view;
	struct outbox *out;
	int pid;
	struct modules modules;
	uint64_t second_ns; /* when `sent` was last 0 */
	unsigned int sent;
};

void stacks_init(struct stacks *s, const struct view *v, struct outbox *out, int pid);
void stacks_release(struct stacks *s);
void stacks_poll(struct stacks *s, uint64_t mono_ns);

#endif
