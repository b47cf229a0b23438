/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run_name.h - which words may name a run: `crema run --name`, CREMA_RUN_NAME.
 *
 * An agent sends no other name, and a collector accepts no other.
 */
#ifndef CREMA_COMMON_RUN_NAME_H
#define CREMA_COMMON_RUN_NAME_H

#include <stdbool.h>

#define RUN_NAME_BYTES 100
#define RUN_NAME_WORDS "1 to 100 bytes of UTF-8 without control characters, and not 'last'"

bool run_name_is_good(const char *name);

#endif
