/* SPDX-License-Identifier: BSD-3-Clause */
/* pylines_class.h - the time class of a thread's wait in an intercepted call, from outside. As the
 * shim decides it, except for what only the call's end shows: there a poll that times out is
 * counted as sleep. */
#ifndef CREMA_AGENT_PYLINES_CLASS_H
#define CREMA_AGENT_PYLINES_CLASS_H

#include <stdint.h>

#include "common/view.h"

/* word: of calls.h, 0: in none; task: whose own thread it is, NULL: none's. A CREMA_T_, or
 * PYLINE_OTHER. */
unsigned int pylines_class(const struct view *v, int pid, const struct crema_task *task,
			   uint64_t word);

#endif
