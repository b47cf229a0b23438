/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_codec.h - counts what codecs of extension modules take and return.
 *
 * A builtin function or a type's method points to its PyMethodDef. py_codec_patch.c replaces that
 * pointer with our copy of the definition, whose ml_meth is a thunk (py_codec_thunk.c) that calls
 * the original: the object itself stays, so names bound earlier are caught too and identity, repr,
 * doc and pickling are unchanged. Before the exchange the layout of the object is checked; if it is
 * not as expected, the object is left alone and noted. py_codec.c counts around the call (codec.h).
 *
 * Only the outermost codec call of a thread counts. The two functions that make extension modules
 * are in the same table: decompression inside of them belongs to an import (codec.h), even if
 * importlib is not used (py_import.c). All functions: GIL held.
 */
#ifndef CREMA_SHIM_PYTHON_PY_CODEC_H
#define CREMA_SHIM_PYTHON_PY_CODEC_H

#include <stdint.h>

#include "ids.h"
#include "shim/python/py.h"

#define CODEC_IMPORTS 2
#define CODEC_UNSEEN 3
/* What determines the codecs that such a call uses (unseen.c). */
enum {
	UNSEEN_READS,
	UNSEEN_WRITES,
	UNSEEN_BOTH,
	UNSEEN_PARQUET,
	UNSEEN_IPC,
	UNSEEN_OPTIONS,
	UNSEEN_WRITER,
	UNSEEN_NAMED,
	UNSEEN_SINK,
	UNSEEN_STREAM,
	UNSEEN_H5PY_READ,
	UNSEEN_H5PY_WRITE,
	UNSEEN_H5PY_MADE,
	UNSEEN_TABLES_READ,
	UNSEEN_TABLES_WRITE,
	UNSEEN_TABLES_MADE,
	UNSEEN_NETCDF_READ,
	UNSEEN_NETCDF_WRITE,
};

struct codec {
	const char *module, *path;
	int decompress, input, into; /* as in codecs.def */
	int is_method;		     /* of an object that keeps a stream's state */
	void *original;
	PyMethodDef def;
};

extern struct codec codecs[CREMA_CODECS];

struct codec_call {
	uint64_t in, cpu_ns, start, unused;
	int counts;
};

/* `data`: the input argument, NULL if there is none. */
void codec_begin(int id, struct codec_call *c, PyObject *self, PyObject *data);
/* Returns `result`; counts if it is not NULL. */
PyObject *codec_end(int id, struct codec_call *c, PyObject *self, PyObject *result);

/* The thunk of codec `id` for a calling convention (ml_flags); NULL if there is none. */
void *codec_thunk(int id, int flags);

#endif
