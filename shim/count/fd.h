/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fd.h - the kind of each descriptor, determined at its first use.
 *
 * One word per descriptor, in private memory. A call that creates or closes a descriptor only
 * resets the word to "unknown"; the next read or mmap determines it (fstat, fstatfs, readlink:
 * once). So it does not matter how the descriptor was made. Descriptors from 65,536 up are checked
 * every time. A vfork child shares the words, so a descriptor that the child uses first is
 * FD_UNKNOWN and not counted.
 */
#ifndef CREMA_SHIM_COUNT_FD_H
#define CREMA_SHIM_COUNT_FD_H

#include <stddef.h>
#include <stdint.h>

#define FD_TABLE 65536 /* descriptors that have a word */

enum fd_kind { FD_UNKNOWN = 0, FD_DATA, FD_IMPORT, FD_OTHER, FD_SOCKET };

struct fd_info {
	uint32_t kind;	     /* enum fd_kind */
	uint32_t filesystem; /* index, for FD_DATA and FD_IMPORT */
	uint32_t unsure;     /* 1: the file system's storage charges are unproven */
	uint32_t row;	     /* index + 1 into crema_shm->file, 0 = none */
	uint32_t packed;     /* 1: a write may compress (packed.h) */
	uint32_t opened;     /* index + 1 into crema_shm->opened, 0 = no line of code is known */
};

/* The kind of fd; the row is that of the calling task's span. */
struct fd_info fd_lookup(int fd);
/* Row + 1 of a file by the name that its reader uses: the row of its descriptors, or of its URL.
 * GIL held. */
uint32_t file_row_by_name(const char *name, uint32_t span);
/* For a forked child: such names will be looked up again. */
void file_names_forget(void);
/* fd < FD_TABLE means something else from now on (notify.h). */
void fd_forget(int fd);
/* It has just been opened at that line (opener.h), 0: unknown. */
void fd_opened_at(int fd, uint32_t line);
/* All files will be determined again. */
void fd_forget_files(void);
/* Modules and libraries: files that the interpreter and the loader read, not the analysis. */
int fd_is_import(const char *path, size_t bytes);
/* 1 if fd < FD_TABLE has been determined. */
int fd_is_known(int fd);

#endif
