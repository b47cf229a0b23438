/* SPDX-License-Identifier: BSD-3-Clause */
/* calls.c - the tables of calls.h. */
#include "common/calls.h"

#include <stddef.h>
#include <string.h>

static const struct {
	const char *name, *family;
} calls[CREMA_CALLS] = {
#define HOOK(family, ret, name, ...) [CREMA_CALL_##name] = {#name, #family},
#include "hooks.def"
#undef HOOK
};

/* Families whose members all wait for the same kind of object, and the others by name. */
static const struct {
	const char *name;
	enum call_on on;
} families[] = {{"READ", CALL_ON_FD},	{"PREAD", CALL_ON_FD},	{"WRITE", CALL_ON_FD},
		{"STREAM", CALL_ON_FD}, {"FSEEK", CALL_ON_FD},	{"COPY", CALL_ON_FD},
		{"RECV", CALL_ON_FD},	{"SEND", CALL_ON_FD},	{"CONNECT", CALL_ON_FD},
		{"FWRITE", CALL_ON_FD}, {"WAIT", CALL_ON_LOCK}, {"LOOKUP", CALL_ON_HOST}},
  names[] = {{"fsync", CALL_ON_FD},	   {"fdatasync", CALL_ON_FD},
	     {"flock", CALL_ON_FD},	   {"lockf", CALL_ON_FD},
	     {"lockf64", CALL_ON_FD},	   {"fcntl", CALL_ON_FD},
	     {"fcntl64", CALL_ON_FD},	   {"epoll_wait", CALL_ON_FD},
	     {"epoll_pwait", CALL_ON_FD},  {"poll", CALL_ON_POLL},
	     {"ppoll", CALL_ON_POLL},	   {"__poll_chk", CALL_ON_POLL},
	     {"waitpid", CALL_ON_PROCESS}, {"wait4", CALL_ON_PROCESS},
	     {"waitid", CALL_ON_PROCESS},  {"open", CALL_ON_PATH},
	     {"open64", CALL_ON_PATH},	   {"openat", CALL_ON_PATH},
	     {"openat64", CALL_ON_PATH},   {"pthread_mutex_lock", CALL_ON_LOCK},
	     {"syscall", CALL_ON_LOCK}};

const char *call_name(uint32_t call)
{
	if (call == CREMA_CALL_syscall) /* the only one of its calls that waits */
		return "futex";
	return call < CREMA_CALLS ? calls[call].name : NULL;
}

enum call_on call_on(uint32_t call)
{
	size_t i;

	if (!call_name(call))
		return CALL_ON_NOTHING;
	for (i = 0; i < sizeof(families) / sizeof(*families); i++)
		if (!strcmp(families[i].name, calls[call].family))
			return families[i].on;
	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(names[i].name, calls[call].name))
			return names[i].on;
	return CALL_ON_NOTHING;
}
