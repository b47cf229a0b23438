/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hello.h - the HELLO frame: the machine, the software stack and the run's name. Nothing else from
 * the environment, and no arguments.
 */
#ifndef CREMA_AGENT_HELLO_H
#define CREMA_AGENT_HELLO_H

#include "agent/fskinds.h"
#include "common/buf.h"
#include "common/view.h"

/* Appends the whole frame to out: 0 or -errno. stack: JSON text of the worker's probe, or NULL. */
int hello_frame(struct buf *out, const struct view *v, const struct fskinds *kinds,
		const struct buf *stack, uint64_t stream);

#endif
