/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * real.h - pointers to the functions that the shim interposes, as the next object would be called.
 *
 * Each pointer first leads to a stub that finds all of them (real_resolve) and calls through, so a
 * wrapper may be called before any constructor has run. The search walks the loaded objects behind
 * our own in load order and reads their DT_GNU_HASH: dlsym would bind to GLIBC_2.34 or to libdl.
 * Where a name has several versions the default one (not hidden by DT_VERSYM) is taken.
 *
 * Threads: resolving twice at once stores the same values.
 */
#ifndef CREMA_SHIM_LIBC_REAL_H
#define CREMA_SHIM_LIBC_REAL_H

#ifdef _FILE_OFFSET_BITS
#error "the shim must not be built with _FILE_OFFSET_BITS: it renames what is interposed"
#endif

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

/* macros of some stdio.h */
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

/* Address of `name` in the first loaded object whose path holds `object_part` (NULL: in any). */
void *real_find(const char *name, const char *object_part);

/* Size that the symbol table gives for the object at `address`; 0 if it is not found. */
size_t real_symbol_bytes(const char *name, const void *address);

/* Where the loaded object that holds `address` begins and ends; 0 if there is none. */
int real_object_of(const void *address, const void **start, const void **end);

/* 1 if the path of the loaded object that holds `address` has `part` in it. */
int real_object_named(const void *address, const char *part);

/* Path of the file this library was loaded from ("" if it cannot be told). */
const char *real_own_path(void);

#endif
