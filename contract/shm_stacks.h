/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_stacks.h - stacks in a worker's shared memory (shm.h): the native ones of long waits, and the
 * Python ones that wait long, and that read and receive bytes.
 */
#ifndef CREMA_CONTRACT_SHM_STACKS_H
#define CREMA_CONTRACT_SHM_STACKS_H

#include <stdint.h>

#include "ids.h"

#define CREMA_SHM_STACKS 128u
#define CREMA_STACK_DEPTH 48u
#define CREMA_SHM_BYTE_STACKS 120u
/* The last of them: long waits whose stacks found no room. */
#define CREMA_SHM_BYTE_STACKS_OTHER 8u
#define CREMA_BYTE_DEPTH 96u

/*
 * One wait of a task that was longer than the threshold, with its native call stack
 * (shim/count/blocked.h). A thread takes a free record by compare-and-swap and fills it; the agent
 * reads what is ready and frees it. If none is free the wait is only counted.
 */
struct crema_stack {
	uint32_t state;	 /* 0 free, 1 being made, 2 ready */
	uint32_t wait;	 /* CREMA_T_x: its class */
	uint64_t number; /* from 0 over the lifetime of the worker */
	uint64_t attempt, waited_ns, end_boot_ns;
	uint64_t python; /* hash of its row of byte_stack[], which has its Python frames; 0: none */
	uint32_t tid, prefix, span;
	uint32_t on;   /* enum crema_stack_on: what was waited for */
	uint32_t file; /* string id of its path, or of the host's name; 0 = none */
	uint32_t peer_bytes;
	uint8_t peer[28];		     /* a socket's other end: sockaddr_in or sockaddr_in6 */
	uint32_t depth;			     /* 0: no stack could be taken */
	uint64_t address[CREMA_STACK_DEPTH]; /* return addresses, innermost first */
};
enum crema_stack_on {
	CREMA_ON_NOTHING = 0,
	CREMA_ON_FILE = 1,
	CREMA_ON_SOCKET = 2,
	CREMA_ON_OTHER = 3,
	CREMA_ON_HOST = 4
};

/* A Python frame: its code object, and where in it. */
struct crema_py_frame {
	uint64_t code;
	uint32_t at;	/* bytes from the code object to the instruction; of 3.10 an index */
	uint32_t check; /* py_code_check() */
};

/*
 * A Python stack of tasks of one span, prefix and dataset: samples by the byte of what it read and
 * received, or its waits of one class that were longer than the threshold
 * (shim/count/byte_sample.h). Threads add to it while it is ready; the agent takes the sums and
 * leaves 0. It retires a row that is not used, and frees it when no thread adds to it: a thread
 * counts itself in `users` before it looks at the state.
 */
struct crema_byte_stack {
	uint32_t state; /* 0 free, 1 being made, 2 ready, 3 retired */
	uint32_t users;
	uint32_t span, prefix, dataset;
	uint16_t depth;
	uint8_t cut;  /* 1: outermost frames are missing */
	uint8_t pool; /* 1: of threads that work for tasks of other threads */
	uint8_t wait; /* CREMA_T_x + 1: long waits of that class; 0: bytes */
	uint8_t full; /* 1: of all stacks that found no room */
	uint16_t pad;
	uint64_t waits, waited_ns; /* exact */
	uint64_t samples[CREMA_LINES_BYTES];
	uint64_t bytes[CREMA_LINES_BYTES];    /* that these stand for */
	uint64_t variance[CREMA_LINES_BYTES]; /* KiB squared: the sum of the squared spreads */
	struct crema_py_frame frame[CREMA_BYTE_DEPTH]; /* innermost first */
};

/* Waits longer than threshold_ns, exact, by their class. */
struct crema_blocked {
	uint64_t threshold_ns; /* 0: none are recorded */
	uint64_t recorded;     /* took a record: the next one's number */
	uint64_t calls[CREMA_TIMES], ns[CREMA_TIMES];
};

#endif
