/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bootstrap.h - from "some process" to "a Dask worker is being measured".
 *
 * 1. At the first pthread_create that holds the GIL of an initialised Python: a C audit hook is
 *    registered. Nothing is imported, no file is opened.
 * 2. When distributed.worker is imported, Worker.start_unsafe is replaced in the class.
 * 3. When a Worker object starts, the process is armed: shared memory, task edges, codecs, pools,
 *    the agent. Every other process stays as it was.
 */
#ifndef CREMA_SHIM_BOOTSTRAP_H
#define CREMA_SHIM_BOOTSTRAP_H

/* 0 in a process that can never become a worker (no Python in it, or CREMA=off): a cheap test. */
int bootstrap_possible(void);
/* Takes step 1 if this call holds the GIL of an initialised Python; otherwise does nothing. */
void bootstrap_try(void);

#endif
