/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packed.h - files whose library compresses data when it flushes, not in the write call.
 *
 * HDF5 keeps chunks until the file or the dataset is flushed or closed, the last reference goes, or
 * another chunk needs the space. Most of these happen without a Python call, but each writes the
 * file: a task that writes such a file has unknown compression.
 *
 * Files are identified by device and inode. The oldest of 1,024 is replaced: by then it was closed,
 * as no process has that many open by default. Only a thread with the GIL marks files; any thread
 * checks.
 */
#ifndef CREMA_SHIM_COUNT_PACKED_H
#define CREMA_SHIM_COUNT_PACKED_H

#include <stdint.h>

/* Marks the file of that path. 1: it was not marked before, and open descriptors must be determined
 * again (fd_forget_files()). */
int packed_mark(const char *path);
int packed_is(uint64_t dev, uint64_t ino);
/* The owner writes one of them. */
void packed_written(uint32_t owner);

#endif
