/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.h - one-line messages for people: "crema: cannot open '/x': no such file or directory".
 *
 * A message states in lower case what failed, on what, and what to do. It is one write(2), so lines
 * of several processes do not mix. Control characters in it become '?'.
 */
#ifndef CREMA_COMMON_LOG_H
#define CREMA_COMMON_LOG_H

/* The program's name before each line; static storage. Default "crema". */
void log_name(const char *name);
/* Where lines go; default descriptor 2. */
void log_to(int fd);
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* strerror in lower case for -errno or errno; static text or thread-local storage. */
const char *log_error(int error);

#endif
