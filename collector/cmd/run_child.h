/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run_child.h - the command of `crema run` as a child process, and the agents below it.
 *
 *	struct run_child c;
 *	run_child_start(&c, command, dir, begin_mono_ns);	as for run_client_set()
 *	run_child_wait(&c);		c.status, as of waitpid()
 *	run_child_agents(&c);		until the agents have sent their records
 *
 * The command ends and is stopped as if it had been started directly: signals to this process reach
 * it once, and if this process is killed, so is the command. Batch systems and containers kill all
 * that is left as soon as their first process ends, so this one ends last: it adopts the agents,
 * which left the command's group, and waits for those whose worker has ended, RUN_AGENTS_MS at
 * most, but not once an agent's records are all in a file and it never reached a collector.
 * Another signal ends that wait.
 *
 * One thread. Afterwards the process has to exit with run_child_end().
 */
#ifndef CREMA_COLLECTOR_CMD_RUN_CHILD_H
#define CREMA_COLLECTOR_CMD_RUN_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RUN_AGENTS_MS 10000
#define RUN_GROUP_MS 20 /* a signal to a whole group has reached each of its processes by then */

struct run_child {
	pid_t pid;
	pid_t witness; /* a process of our group without a purpose of its own; 0: none */
	int status;
	bool ran; /* false: it could not be executed, and the reason was printed */
	sigset_t taken, before;
	struct sigaction chld;
	int failed; /* read end: a byte from a child that could not execute the command */
};

/* 0 or -errno: nothing was started. */
int run_child_start(struct run_child *c, char **command, const char *dir, uint64_t begin_mono_ns);
void run_child_wait(struct run_child *c);
void run_child_agents(struct run_child *c);
/* Ends like the command: its status, or its signal. */
int run_child_end(const struct run_child *c);

#endif
