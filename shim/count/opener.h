/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * opener.h - which line of the user's own code has opened a file, and what went through.
 *
 * The interpreter tells that it is about to open a file (bootstrap.c); the next open() of that path
 * by the same thread takes the line along. What is read and written through the descriptor is the
 * line's from then on, whichever thread does it. Descriptors that a library opens by itself and
 * copies of descriptors have no line.
 *
 * opener_expect(): GIL held. The others: any thread, no lock.
 */
#ifndef CREMA_SHIM_COUNT_OPENER_H
#define CREMA_SHIM_COUNT_OPENER_H

#include "shim/shim.h"

#define OPENER_LINES 2048u /* of a process; those beyond are not known */

/* The calling thread's next open() of `path` is at that line. */
void opener_expect(const char *path, const struct crema_line *line);
/* Whether it expects one. */
int opener_expects(void);
/* The line of the open() that has just returned, as a number; 0: none. Expects nothing then. */
uint32_t opener_take(const char *path);
const struct crema_line *opener_line(uint32_t number);

/* Row + 1 of what that line's descriptors of a file moved; 0: there is no room. */
uint32_t opener_row(uint32_t file_row, const struct crema_line *line);

#endif
