/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * real.h - pointers to the functions that the shim interposes, as found in the next object.
 *
 * Each pointer first leads to a stub that finds all of them (real_resolve) and calls through, so a
 * wrapper may be called before any constructor has run. The search walks the loaded objects after
 * ours in load order and reads their DT_GNU_HASH: dlsym would bind to GLIBC_2.34 or to libdl. If a
 * name has several versions, the default one (not hidden by DT_VERSYM) is taken.
 *
 * Threads: resolving twice at once stores the same values.
 */
#ifndef CREMA_SHIM_LIBC_REAL_H
#define CREMA_SHIM_LIBC_REAL_H

#ifdef _FILE_OFFSET_BITS
#error "the shim must not be built with _FILE_OFFSET_BITS: it renames what is interposed"
#endif

#include <dirent.h>
#include <mntent.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* macros in some versions of stdio.h */
#undef fread_unlocked
#undef getc
#undef putc

struct real {
#define HOOK(family, ret, name, params, args, fd, size) ret(*name) params;
#include "hooks.def"
#undef HOOK
};

extern struct real real;

void real_resolve(void);

/* Address of `name` in the first loaded object whose path contains `object_part` (NULL: in any). */
void *real_find(const char *name, const char *object_part);

/* Size of the object at `address` according to the symbol table; 0 if it is not found. */
size_t real_symbol_bytes(const char *name, const void *address);

/* Start and end of the loaded object that contains `address`; 0 if there is none. */
int real_object_of(const void *address, const void **start, const void **end);

/* 1 if the path of the loaded object that contains `address` contains `part`. */
int real_object_named(const void *address, const char *part);

/* Path of the file this library was loaded from ("" if unknown). */
const char *real_own_path(void);

#endif
