/* SPDX-License-Identifier: BSD-3-Clause */
/* arm.c - sets up the destination, the shared memory and the agent. */
#define _GNU_SOURCE
#include "shim/start/arm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/count/blocked.h"
#include "shim/libc/sys.h"
#include "shim/count/runqueue.h"
#include "shim/count/task.h"

static char collector[512];

/* host:port, [v6]:port or dir:/path; anything else is a mistake that is worth a message. */
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
			 "with 'crema run --' or under an init",
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

int arm_process(const char *usual, int say, void (*forked)(void))
{
	static uint32_t tried; /* process id: a forked child tries again */
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
		forked();
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
	blocked_open();
	runqueue_keeps = blocked_threshold_ns != UINT64_MAX; /* otherwise no descriptor is kept */
	if (runqueue_keeps)
		task_memory_keep();
	return 0;
}
