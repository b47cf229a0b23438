/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_line.h - which line of the user's own code is running: the innermost frame of this thread that
 * is neither an installed package's nor the interpreter's. GIL held; exceptions are cleared.
 *
 * Python makes an object of each frame that is read: some microseconds for a deep stack.
 */
#ifndef CREMA_SHIM_PYTHON_PY_LINE_H
#define CREMA_SHIM_PYTHON_PY_LINE_H

#include "shim/shim.h"

/* file 0: no such frame among the 128 innermost. */
struct crema_line py_own_line(void);

#endif
