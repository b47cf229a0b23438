/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hides.h - what a call of codecs.def's direction U hides, by the called library. Each function
 * returns the counts that are unknown for this call: 0 if it (de)compresses nothing, or only data
 * that is counted elsewhere. GIL held; exceptions are left for unseen.c to clear.
 */
#ifndef CREMA_SHIM_PYTHON_HIDES_H
#define CREMA_SHIM_PYTHON_HIDES_H

#include "shim/count/codec.h"
#include "py_codec.h"

#define HIDES_READS CODEC_COUNTS(decompress)
#define HIDES_WRITES CODEC_COUNTS(compress)
#define HIDES_BOTH (HIDES_READS | HIDES_WRITES)
/* It decompresses only zstd, which is counted if the task's own threads do it. */
#define HIDES_ZSTD (UINT64_C(1) << 63)

/* `argument`: the one that codecs.def names; `result`: NULL before the call. */
#define HIDES(name)                                                                                \
	uint64_t name(const struct codec_call *c, PyObject *self, PyObject *argument,              \
		      PyObject *result)

/* libarrow (hides_arrow.c) */
HIDES(hides_parquet); /* self: a reader with metadata */
HIDES(hides_ipc);     /* self: a reader of record batches, including those in memory */
HIDES(hides_options); /* argument: IpcWriteOptions or None */
HIDES(hides_writer);  /* self: a writer of record batches */
HIDES(hides_named);   /* argument: the path or stream that is read */
HIDES(hides_sink);    /* argument: where to write */
HIDES(hides_stream);  /* self: a NativeFile */

/* Any task may open a writer, and another one may write with it. */
void writer_opens(PyObject *writer, PyObject *options);

/* HDF5 (hides_hdf5.c): the dataset is h5py's argument or result, PyTables' and netCDF4's self */
HIDES(hides_h5py_read);
HIDES(hides_h5py_write);
HIDES(hides_h5py_made); /* result */
HIDES(hides_tables_read);
HIDES(hides_tables_write);
HIDES(hides_tables_made);
HIDES(hides_netcdf_read);
HIDES(hides_netcdf_write);
/* h5py's names of filters, or HDF5's: 1 if one of them is not counted. */
int hides_filters(PyObject *dict);

#endif
