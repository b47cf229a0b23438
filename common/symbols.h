/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * symbols.h - names of functions, from the symbol tables of ELF files on this machine.
 *
 * A file is only used if its build id equals that of the worker's file. An address gets a name only
 * if a function's symbol covers it, never from the nearest symbol before it. One thread.
 */
#ifndef CREMA_COMMON_SYMBOLS_H
#define CREMA_COMMON_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbols {
	int fd;
	struct Elf *elf;
	struct symbol *symbol; /* by address */
	size_t n, strings;
};

/* 0; -ESTALE: another build id; or -errno. Release it in any case. build_id: hex. */
int symbols_open(struct symbols *s, const char *path, const char *build_id);
/* The same for whatever file is at that path. */
int symbols_open_any(struct symbols *s, const char *path);
/* The function that contains the byte at this offset in the file; NULL: unknown. */
const char *symbols_name(const struct symbols *s, uint64_t place);
/*
 * A name of C++ as it is in the source, without arguments, in `to`; any other name as it is.
 * libstdc++ translates it, opened by name; without it, names stay as they are.
 */
const char *symbols_plain(const char *name, char *to, size_t size);
/* A library of the C library itself, by its file's name: each call ends in it. */
bool symbols_of_libc(const char *base);
void symbols_release(struct symbols *s);

#endif
