/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_frames.h - a thread's own Python frames, without the interpreter lock.
 *
 * Only a thread itself changes the chain of its frames, and in an intercepted call it does not: so
 * it can be followed there, whether the thread holds the lock or not, by the layout of the version
 * (contract/py_layout.h). Before the first walk the chain is compared with what the interpreter's
 * own functions return; a build that differs has no such stacks. When the interpreter ends it frees
 * the states of threads that are still in calls: from its exit handlers on no chain is followed.
 */
#ifndef CREMA_SHIM_PYTHON_PY_FRAMES_H
#define CREMA_SHIM_PYTHON_PY_FRAMES_H

/* A task begins: finds the layout and compares, once in a process. GIL held. */
void py_frames_ready(void);

#endif
