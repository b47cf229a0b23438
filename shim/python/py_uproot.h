/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_uproot.h - counts the pieces of a file that uproot decompresses: baskets of TTrees
 * (py_uproot.c) and pages of RNTuples (py_rntuple.c). GIL held; exceptions are cleared.
 */
#ifndef CREMA_SHIM_PYTHON_PY_UPROOT_H
#define CREMA_SHIM_PYTHON_PY_UPROOT_H

#include <stdint.h>

#include "shim/python/py.h"

struct uproot_piece {
	uint64_t bytes, raw_bytes; /* in the file, decompressed */
	uint64_t at;		   /* in the file; UINT64_MAX: unknown */
	int is_page;
	uint64_t cluster; /* of a page; UINT64_MAX: unknown */
};

/* `reader`, an uproot model, has decompressed a piece of its file, for the task of this thread or
 * context. */
void uproot_used(PyObject *reader, const struct uproot_piece *p);
/* py_column.c: the piece belongs to a column. */
struct crema_task;
void column_of_piece(const struct crema_task *task, PyObject *reader, const struct uproot_piece *p);
/* This uproot keeps pieces where they cannot be seen: they are unknown from now on. */
void uproot_unseen(void);

#endif
