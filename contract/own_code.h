/* SPDX-License-Identifier: BSD-3-Clause */
/* own_code.h - which Python files are the user's own, by their names alone. */
#ifndef CREMA_CONTRACT_OWN_CODE_H
#define CREMA_CONTRACT_OWN_CODE_H

#include <string.h>

/* 1 if it belongs to no installed package and not to the interpreter. */
static inline int crema_is_own_code(const char *file)
{
	return strncmp(file, "<frozen ", 8) != 0 && !strstr(file, "/site-packages/") &&
	       !strstr(file, "/dist-packages/") && !strstr(file, "/lib/python");
}

#endif
