/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fd.h - what descriptors are, found out at their first use.
 *
 * One word per descriptor, private memory. A call that makes or ends a descriptor only sets the
 * word back to "not known"; the next read or mmap looks (fstat, fstatfs, readlink: once). So it
 * does not matter by which way the descriptor came. Descriptors from 65,536 up are looked at every
 * time. A vfork child shares the words, so what it looks at first is FD_UNKNOWN and not counted.
 */
#ifndef CREMA_SHIM_COUNT_FD_H
#define CREMA_SHIM_COUNT_FD_H

#include <stdint.h>

#define FD_TABLE 65536 /* descriptors that have a word */

enum fd_kind { FD_UNKNOWN = 0, FD_DATA, FD_IMPORT, FD_OTHER, FD_SOCKET };

struct fd_info {
	uint32_t kind;	     /* enum fd_kind */
	uint32_t filesystem; /* index, for FD_DATA and FD_IMPORT */
	uint32_t unsure;     /* 1: the file system's storage charges are unproven */
	uint32_t row;	     /* index + 1 into crema_shm->file, 0 = none */
	uint32_t packed;     /* 1: who writes it may pack (packed.h) */
};

/* What fd is; the row is the one of the calling task's span. */
struct fd_info fd_lookup(int fd);
/* Row + 1 of a file by the name its reader gives it: the row of its descriptors, or of its URL. GIL
 * held. */
uint32_t file_row_by_name(const char *name, uint32_t span);
/* fd < FD_TABLE means something else from now on (notify.h). */
void fd_forget(int fd);
/* All files are looked at again. */
void fd_forget_files(void);
/* 1 if fd < FD_TABLE was looked at. */
int fd_is_known(int fd);

#endif
