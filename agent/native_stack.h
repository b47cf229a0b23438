/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * native_stack.h - the functions of C and C++ that a waiting thread is in, between its call and the
 * innermost Python frame.
 *
 * Read from outside: the kernel gives the thread's program counter and stack pointer
 * (/proc/PID/task/TID/syscall), libunwind walks from there by the libraries' unwind tables, and
 * memory is read without stopping the thread. A stack counts only if the thread is still in the
 * same call afterwards. A thread that runs has no such registers, so its functions are unknown.
 * Other registers are unknown too: the walk ends with "?" where it needs one that no inner function
 * saved.
 *
 * A child of the agent does it: unwind tables and symbols are in the libraries' files, and the file
 * server behind them may be what hangs. The child opens libunwind, reads the stacks of one round,
 * and ends; the agent takes what it finds in later rounds, and never waits. Without libunwind
 * stacks are unknown, and `crema doctor` reports that. A stack takes 10 to 30 ms of CPU: on average
 * at most NATIVE_SHARE of a core, after up to NATIVE_BURST_NS at once. One thread.
 */
#ifndef CREMA_AGENT_NATIVE_STACK_H
#define CREMA_AGENT_NATIVE_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define NATIVE_FRAMES 16u
#define NATIVE_FRAME_BYTES 160u
#define NATIVE_SHARE 0.01
#define NATIVE_BURST_NS UINT64_C(500000000)
#define NATIVE_ROUND 16u       /* stacks that one child reads */
#define NATIVE_ROUND_SECONDS 5 /* a child that takes longer is killed */

struct native_stack {
	bool known;
	uint32_t frames; /* innermost first; deeper ones are left out */
	/* "FUNCTION LIBRARY", "LIBRARY+0x12f0", "0x7f..."; last "?": its callers are unknown */
	char frame[NATIVE_FRAMES][NATIVE_FRAME_BYTES];
};

struct native_want {
	uint32_t tid, ticket;
	uint64_t entry;
};

/* What a child writes. */
struct native_found {
	uint32_t ticket;
	uint64_t cpu_ns; /* of the child so far */
	struct native_stack stack;
};

struct native {
	int pid;
	uint32_t tickets;
	size_t wanted, reading, found;
	struct native_want want[NATIVE_ROUND];
	struct native_found result[NATIVE_ROUND];
	pid_t child; /* 0: none */
	int from;    /* its pipe */
	uint64_t began_boot_ns, charged_ns;
	uint64_t credit_ns, credit_boot_ns;
};

void native_init(struct native *n, int pid);
void native_release(struct native *n);
/*
 * Asks for the stack of a thread; returns a ticket, 0: there is no room in this round. entry:
 * py_stack_entry() of the thread; 0: the interpreter's functions are known by name only.
 */
uint32_t native_want(struct native *n, uint32_t tid, uint64_t entry);
/* True: it was tried, and *s says what is known. */
bool native_take(const struct native *n, uint32_t ticket, struct native_stack *s);
/* Once a round, after those: starts a child, or takes what it has found. */
void native_turn(struct native *n, uint64_t boot_ns);

#endif
