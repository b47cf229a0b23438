/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls.h - contract/hooks.def as a table: the name of each intercepted call, and the meaning of
 * the object in a thread's word. Static, any thread.
 */
#ifndef CREMA_COMMON_CALLS_H
#define CREMA_COMMON_CALLS_H

#include <stdint.h>

#include "contract/calls.h"

enum call_on {
	CALL_ON_NOTHING,
	CALL_ON_FD,
	CALL_ON_LOCK,	 /* its address */
	CALL_ON_PATH,	 /* the address of its text */
	CALL_ON_HOST,	 /* the same of a host's name, or 0 */
	CALL_ON_POLL,	 /* the address of a list of struct pollfd */
	CALL_ON_PROCESS, /* its number, or a negative one as for waitpid() */
};

/* NULL: no call has that number. */
const char *call_name(uint32_t call);
enum call_on call_on(uint32_t call);

#endif
