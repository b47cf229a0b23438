/* SPDX-License-Identifier: BSD-3-Clause */
/* program.h - how a program is linked: whether its loader can preload the library. */
#ifndef CREMA_COLLECTOR_PRELOAD_PROGRAM_H
#define CREMA_COLLECTOR_PRELOAD_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

struct program {
	bool is_static; /* no loader */
	bool is_musl;	/* musl's loader loads the library, which then measures nothing */
};

#define PROGRAM_MUSL_ADVICE "use a Python built for glibc"

/* Of an ELF file of 64 bits; anything else is neither. */
struct program program_of(int fd);

/*
 * Whether `command`, found as execvp() does, is a program with musl, or a script whose interpreter
 * is one, also by `#!/usr/bin/env NAME`: its path is then in `path`. Not what a script starts.
 */
bool program_uses_musl(const char *command, char *path, size_t size);

#endif
