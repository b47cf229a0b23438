/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * opener.h - which line of the user's own code opened a file, and what it read and wrote.
 *
 * The interpreter reports that it is about to open a file (bootstrap.c); the next open() of that
 * path by the same thread takes that line. From then on, what is read and written through the
 * descriptor counts for the line, whichever thread does it. Descriptors that a library opens
 * directly and copies of descriptors have no line.
 *
 * opener_expect(): GIL held. The others: any thread, no lock.
 */
#ifndef CREMA_SHIM_COUNT_OPENER_H
#define CREMA_SHIM_COUNT_OPENER_H

#include "shim/shim.h"

#define OPENER_LINES 2048u /* per process; further ones are unknown */

/* The calling thread's next open() of `path` is at that line. */
void opener_expect(const char *path, const struct crema_line *line);
/* 1 if the calling thread expects one. */
int opener_expects(void);
/* The line of the open() that has just returned, as a number; 0: none. Ends the expectation. */
uint32_t opener_take(const char *path);
/* For a forked child, none of whose descriptors has a line: no number is in use. */
void opener_forget(void);
const struct crema_line *opener_line(uint32_t number);

/* Row + 1 of what that line's descriptors of a file moved; 0: there is no room. */
uint32_t opener_row(uint32_t file_row, const struct crema_line *line);

#endif
