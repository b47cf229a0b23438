/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unseen.h - calls into libraries whose codecs cannot be seen (libarrow, HDF5 below h5py, PyTables
 * and netCDF4, blosc2, streams of zstandard): what such a call (de)compresses for its task is
 * unknown, not 0.
 *
 * It is known if the call uses no codec, or only zstd, which zstd.c counts, and if that can be
 * determined: hides.h. Frames that libarrow's own threads do are unattributed: if there are any
 * while a task runs that has called a reader, its decompression is unknown, too.
 *
 * GIL held, except in unseen_task_ends().
 */
#ifndef CREMA_SHIM_PYTHON_UNSEEN_H
#define CREMA_SHIM_PYTHON_UNSEEN_H

#include "shim/python/py_codec.h"

/* Around a call of codecs.def's direction U; `argument` is the one that it names, if any. */
void unseen_begin(const struct codec *k, struct codec_call *c, PyObject *self, PyObject *argument);
void unseen_end(const struct codec *k, const struct codec_call *c, PyObject *self,
		PyObject *result);

/* The slot begins, and ends, to mean a task. Any thread. */
void unseen_task_begins(uint32_t owner);
void unseen_task_ends(uint32_t owner);

#endif
