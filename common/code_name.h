/* SPDX-License-Identifier: BSD-3-Clause */
/* code_name.h - parts of the names of Python's functions and files. */
#ifndef CREMA_COMMON_CODE_NAME_H
#define CREMA_COMMON_CODE_NAME_H

#include <stdbool.h>
#include <string.h>

static inline bool code_ends_with(const char *file, const char *end)
{
	size_t n = strlen(file), m = strlen(end);

	return n >= m && !strcmp(file + n - m, end);
}

/* "P.f.<locals>.g": g. Before Python 3.11 names have no other parts. */
static inline const char *code_last_name(const char *function)
{
	const char *dot = strrchr(function, '.');

	return dot ? dot + 1 : function;
}

#endif
