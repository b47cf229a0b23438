/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packed.h - files whose library packs what was written when it flushes, not when it is told to
 * write.
 *
 * HDF5 keeps chunks until the file or the dataset is flushed or closed, the last reference goes, or
 * another chunk needs the room. No Python call tells of most of these, but each writes the file: a
 * task that writes such a file has unknown compression.
 *
 * Files are known by device and inode. The oldest of 1,024 makes room: by then it was closed, as no
 * process has that many open by default. Marking is done with the GIL held; asking by any thread.
 */
#ifndef CREMA_SHIM_COUNT_PACKED_H
#define CREMA_SHIM_COUNT_PACKED_H

#include <stdint.h>

/* From now on the file of that path is one. 1: it was not; what is known of open descriptors is to
 * be read again (fd_forget_files()). */
int packed_mark(const char *path);
int packed_is(uint64_t dev, uint64_t ino);
/* The owner writes one of them. */
void packed_written(uint32_t owner);

#endif
