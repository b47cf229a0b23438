/* SPDX-License-Identifier: BSD-3-Clause */
/* pylines_class.c - classes by the families of hooks.def, and by the kind of descriptor. */
#include "agent/pylines_class.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/doing_object.h"
#include "agent/pyline_table.h"
#include "common/calls.h"

enum family {
#define FAMILY(name) FAMILY_##name,
	FAMILY(READ) FAMILY(PREAD) FAMILY(WRITE) FAMILY(STREAM) FAMILY(FWRITE) FAMILY(FSEEK)
		FAMILY(COPY) FAMILY(ADVISE) FAMILY(OPEN) FAMILY(SEEK) FAMILY(DUP) FAMILY(ACCEPT)
			FAMILY(DROP) FAMILY(MAP) FAMILY(WAIT) FAMILY(RECV) FAMILY(SEND)
				FAMILY(CONNECT) FAMILY(LOOKUP) FAMILY(POLL) FAMILY(BLOCK)
					FAMILY(FIND) FAMILY(OTHER)
#undef FAMILY
};

/* For BLOCK the fifth column is the class. */
static const struct {
	uint8_t family;
	const char *fifth;
} calls[CREMA_CALLS] = {
#define HOOK(family, ret, name, params, args, fifth, ...)                                          \
	[CREMA_CALL_##name] = {FAMILY_##family, #fifth},
#include "hooks.def"
#undef HOOK
};

static unsigned int of_block(const char *class)
{
	static const char *const names[CREMA_TIMES] = {
#define TIME(id, ...) [CREMA_T_##id] = #id,
#include "counters.def"
#undef TIME
	};

	for (unsigned int i = 0; i < CREMA_TIMES; i++)
		if (!strcmp(names[i], class))
			return i;
	return PYLINE_OTHER;
}

/* A socket is the network, a file is storage; a pipe, or anything else that can block, is a
 * lock. */
static unsigned int of_descriptor(int pid, int fd)
{
	char link[64], to[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/fd/%d", pid, fd);
	n = readlink(link, to, sizeof(to) - 1);
	to[n > 0 ? n : 0] = '\0';
	return *to == '/'		    ? CREMA_T_storage_wait
	       : !strncmp(to, "socket:", 7) ? CREMA_T_network_wait
	       : *to			    ? CREMA_T_lock_wait
					    : PYLINE_OTHER;
}

static unsigned int of_poll(int pid, uint64_t object)
{
	struct pollfd first;

	if (doing_memory(pid, object, &first, sizeof(first)) != sizeof(first))
		return PYLINE_OTHER;
	return of_descriptor(pid, first.fd);
}

static unsigned int of_call(const struct view *v, int pid, uint64_t word)
{
	uint32_t call = crema_call_of(word);
	uint64_t object = crema_call_object(word);

	if (!call_name(call))
		return PYLINE_OTHER;
	switch ((enum family)calls[call].family) {
	case FAMILY_BLOCK:
		return of_block(calls[call].fifth);
	case FAMILY_WAIT:
		return object - v->shm->python_runtime < v->shm->python_runtime_bytes
			       ? CREMA_T_gil_wait
			       : CREMA_T_lock_wait;
	case FAMILY_RECV:
	case FAMILY_SEND:
	case FAMILY_CONNECT:
	case FAMILY_ACCEPT:
	case FAMILY_LOOKUP:
		return CREMA_T_network_wait;
	case FAMILY_POLL: /* for select() the object is the number of descriptors it checks */
		if (!object)
			return CREMA_T_sleep;
		return call_on(call) == CALL_ON_POLL ? of_poll(pid, object) : CREMA_T_network_wait;
	default:
		break;
	}
	switch (call_on(call)) {
	case CALL_ON_FD:
		return of_descriptor(pid, (int)(uint32_t)object);
	case CALL_ON_PATH:
		return CREMA_T_storage_wait;
	case CALL_ON_LOCK:
	case CALL_ON_PROCESS:
		return CREMA_T_lock_wait;
	default:
		return PYLINE_OTHER;
	}
}

unsigned int pylines_class(const struct view *v, int pid, const struct crema_task *task,
			   uint64_t word)
{
	unsigned int class = of_call(v, pid, word);

	return class == CREMA_T_lock_wait && task && crema_request_under_way(task)
		       ? CREMA_T_network_wait
		       : class;
}
