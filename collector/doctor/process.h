/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * process.h - a process according to /proc, for crema doctor; and which ancestor lost LD_PRELOAD.
 *
 * Data that the kernel does not let us read (another user's environment and maps) is marked as
 * hidden, never taken as empty. /proc/PID/environ is the environment at the start of the process.
 */
#ifndef CREMA_COLLECTOR_DOCTOR_PROCESS_H
#define CREMA_COLLECTOR_DOCTOR_PROCESS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/buf.h"

enum process_kind {
	PROCESS_OTHER,
	PROCESS_WORKER, /* runs tasks */
	PROCESS_NANNY,	/* starts workers */
};

struct process {
	pid_t pid, parent;
	uid_t uid;
	bool hidden;	  /* environment or maps are not readable */
	bool has_preload; /* LD_PRELOAD names a libcrema.so */
	bool loaded;	  /* libcrema.so is in its maps */
	bool is_static, is_musl, is_setuid;
	char exe[PATH_MAX], library[PATH_MAX], shm[PATH_MAX];
	char name[64];
	struct buf words, environ; /* NUL-separated, with an extra NUL at the end */
};

/* 0 or -errno (it is gone). Release it after success. */
int process_read(struct process *p, pid_t pid);
void process_release(struct process *p);
/* The variable's value, NULL: not set (or hidden). */
const char *process_env(const struct process *p, const char *name);
/* Word i of the command line; NULL: there are fewer. */
const char *process_word(const struct process *p, size_t i);
/* The word after this one, an option; NULL: there is none. */
const char *process_option(const struct process *p, const char *option);
enum process_kind process_kind(const struct process *p);
bool process_is_agent(const struct process *p);

/*
 * Writes into `text` which process dropped LD_PRELOAD on the way to p, and into `advice` what to
 * do. True: some process above p had it.
 */
bool layer_of(const struct process *p, char *text, size_t size, char *advice, size_t advice_size);

#endif
