/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * utf8.h - text of any origin as UTF-8, and which of its characters may reach a screen.
 *
 * Files (JSON, CSV, SQLite) keep every character: utf8_add() replaces only bytes that are not part
 * of one. Terminals and pages get what utf8_is_shown() accepts; the caller writes '?' for each of
 * the others.
 */
#ifndef CREMA_COMMON_UTF8_H
#define CREMA_COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

/* Length of the well-formed UTF-8 sequence at p (n >= 1 bytes are there), 0 if there is none. */
size_t utf8_length(const void *p, size_t n);
/* The same, and its code point. */
size_t utf8_take(const void *p, size_t n, uint32_t *c);
/* False for controls, for marks that change the direction of writing and for invisible ones. */
bool utf8_is_shown(uint32_t c);
/* False for the second and later bytes of a character. */
bool utf8_begins(char byte);
/* Length of the text without a last character that a cut left incomplete. */
size_t utf8_whole(const char *text, size_t n);
/* Appends text; each byte that is not part of a character becomes U+FFFD. 0 or -ENOMEM. */
int utf8_add(struct buf *out, const char *text, size_t n);

#endif
