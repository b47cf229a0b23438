/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bootstrap.h - the steps from any process to a measured Dask worker.
 *
 * 1. At the first pthread_create that holds the GIL of an initialised Python, or, in a Python that
 *    has not started a thread, when it opens a module of coffea.processor: a C audit hook is
 *    registered. Nothing is imported, no file is opened.
 * 2. When distributed.worker is imported, Worker.start_unsafe is replaced in the class; when
 *    coffea.processor.executor is imported, its work function is replaced.
 * 3. When a Worker object starts, or the work function is first called, the process is armed:
 *    shared memory, tasks, codecs, pools, the agent. Every other process stays as it was.
 */
#ifndef CREMA_SHIM_HOOKS_BOOTSTRAP_H
#define CREMA_SHIM_HOOKS_BOOTSTRAP_H

/* 0 in a process that can never become a worker (no Python in it, or CREMA=off): a cheap test. */
int bootstrap_possible(void);
/* Takes step 1 if this call holds the GIL of an initialised Python; otherwise does nothing. */
void bootstrap_try(void);

/* The second way to step 1, for processes without threads: not 0 while it may still be needed. */
extern int bootstrap_watching;
void bootstrap_watch(void);
/* Called after a file was opened; any thread, errno is kept. */
void bootstrap_opened(const char *path);
/* Called when a thread is about to start: from now on only the first way is open. */
void bootstrap_thread(void);

/*
 * missing.c: a module lacks what its patch needs. One line reports it, and what can no longer be
 * counted is unknown from now on. A patch that is not in the table is a codec's. missing_tell():
 * the process is armed now, so the note goes into its shared memory. GIL held.
 */
struct _object;
void missing_say(int (*patch)(struct _object *), const char *module);
void missing_tell(void);
/* The process has more than one interpreter; any thread, with the GIL of any of them. */
void missing_interpreter(void);

#endif
