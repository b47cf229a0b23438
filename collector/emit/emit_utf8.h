/* SPDX-License-Identifier: BSD-3-Clause */
/* emit_utf8.h - text of any origin as UTF-8: every byte that belongs to no character becomes
 * U+FFFD. */
#ifndef COLLECTOR_EMIT_UTF8_H
#define COLLECTOR_EMIT_UTF8_H

#include <stddef.h>

#include "common/buf.h"

/* Length of the well-formed UTF-8 sequence at p (n >= 1 bytes are there), 0 if there is none. */
size_t utf8_length(const unsigned char *p, size_t n);
/* Appends text as UTF-8: 0 or -ENOMEM. */
int utf8_add(struct buf *out, const char *text, size_t n);

#endif
