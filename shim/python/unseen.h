/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unseen.h - calls into libraries whose codecs cannot be seen (libarrow's snappy, lz4, gzip,
 * brotli; streams of zstandard, whose library is its own): what such a call (de)compresses for its
 * task is unknown, not 0.
 *
 * It is known where all codecs of the call are zstd, which zstd.c counts, or none: the metadata of
 * a Parquet reader tell, and a writer's frames. Frames that libarrow's own threads do are nobody's:
 * a task that has called a reader and during which there were such has unknown decompression, too.
 *
 * GIL held, but for unseen_task_ends().
 */
#ifndef CREMA_SHIM_UNSEEN_H
#define CREMA_SHIM_UNSEEN_H

#include "shim/python/py_codec.h"

/* Around a call of codecs.def's direction U. */
void unseen_begin(const struct codec *k, struct codec_call *c, PyObject *self);
void unseen_end(const struct codec *k, const struct codec_call *c);

/* The slot begins, and ends, to mean a task. Any thread. */
void unseen_task_begins(uint32_t owner);
void unseen_task_ends(uint32_t owner);

#endif
