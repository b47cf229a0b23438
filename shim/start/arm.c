/* SPDX-License-Identifier: BSD-3-Clause */
/* arm.c - where to send to, the shared memory, the agent. */
#define _GNU_SOURCE
#include "shim/start/arm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/count/blocked.h"
#include "shim/count/op.h"
#include "shim/python/patch.h"
#include "shim/libc/real.h"
#include "shim/python/notify.h"
#include "shim/libc/sys.h"
#include "shim/count/task.h"

extern char _PyRuntime __attribute__((weak));

static char collector[512];

/* host:port, [v6]:port or dir:/path; anything else is a mistake worth a line. */
static int collector_is_sane(const char *v)
{
	const char *colon = strrchr(v, ':'), *p;
	long port = 0;

	if (strlen(v) >= sizeof(collector))
		return 0;
	if (!strncmp(v, "dir:", 4))
		return v[4] == '/';
	if (!colon || colon == v || !colon[1])
		return 0;
	for (p = colon + 1; *p; p++) {
		if (*p < '0' || *p > '9' || port > 65535)
			return 0;
		port = port * 10 + (*p - '0');
	}
	for (p = v; p < colon; p++)
		if (*p == '/' || *p == ' ' || (*p == ':' && v[0] != '['))
			return 0;
	return port > 0 && port <= 65535;
}

static int choose_collector(const char *usual, int say)
{
	const char *env = getenv("CREMA_COLLECTOR");

	if (!env || !*env) {
		if (strlen(usual) >= sizeof(collector))
			return -ENAMETOOLONG;
		strcpy(collector, usual);
		if (say)
			shim_say("CREMA_COLLECTOR is not set: this process sends to ", collector);
		return 0;
	}
	if (!collector_is_sane(env)) {
		shim_say("CREMA_COLLECTOR must be HOST:PORT or dir:/PATH; this worker runs "
			 "unmeasured, it is: ",
			 env);
		return -EINVAL;
	}
	strcpy(collector, env);
	return 0;
}

static void say_no_agent(int error)
{
	if (error == -ENOTSUP)
		shim_say("this worker runs unmeasured: it is process 1 or a subreaper; start it "
			 "under an init (docker run --init)",
			 NULL);
	else if (error == -EAGAIN || error == -ENOMEM)
		shim_say("this worker runs unmeasured: no process or no memory for the agent; see "
			 "'ulimit -u' and 'ulimit -v'",
			 NULL);
	else
		shim_say("this worker runs unmeasured: cannot start the agent; set CREMA_AGENT to "
			 "the path of crema-agent, now ",
			 agent_path());
}

/* "3.11.7 (main, ...": 0x030b0700 */
static uint32_t python_version(const char *text)
{
	uint32_t part[3] = {0}, i = 0;

	for (; *text && i < 3; text++) {
		if (*text >= '0' && *text <= '9')
			part[i] = part[i] * 10 + (uint32_t)(*text - '0');
		else if (*text == '.')
			i++;
		else
			break;
	}
	return part[0] << 24 | part[1] << 16 | part[2] << 8;
}

/* Where the interpreter's runtime lies, for the waits for the GIL here and for the agent. */
static void tell_python(void)
{
	size_t bytes = real_symbol_bytes("_PyRuntime", &_PyRuntime);

	wait_set_runtime(&_PyRuntime, bytes);
	crema_shm->python_runtime_bytes = bytes;
	crema_shm->python_types[0] = (uintptr_t)&PyCode_Type;
	crema_shm->python_types[1] = (uintptr_t)&PyUnicode_Type;
	crema_shm->python_types[2] = (uintptr_t)&PyBytes_Type;
	crema_shm->python_version = python_version(Py_GetVersion());
	__atomic_store_n(&crema_shm->python_runtime, (uintptr_t)&_PyRuntime, __ATOMIC_RELEASE);
}

int arm_process(const char *usual, int say)
{
	static uint32_t tried; /* process id: a forked child tries for itself */
	const char *why = "";
	uint32_t pid = (uint32_t)sys_getpid();
	int error;

	if (shim_armed() || tried == pid)
		return shim_armed() ? 0 : -EALREADY;
	tried = pid;
	error = choose_collector(usual, say);
	if (error)
		return error;
	if (shim_epoch)
		notify_forked();
	if (shim_arm(&why)) {
		shim_say("this worker runs unmeasured: ", why);
		return -ENOSYS;
	}
	error = agent_start(collector);
	if (error) {
		shim_disarm();
		say_no_agent(error);
		return error;
	}
	tell_python();
	blocked_open();
	if (blocked_threshold_ns != UINT64_MAX) /* else no descriptor is kept */
		task_memory_keep();
	missing_tell();
	patch_pending();
	return 0;
}
