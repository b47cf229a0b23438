/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emit_text.h - text of any origin on a terminal.
 *
 * Names of a run are hostile: text_clean() leaves nothing that moves the cursor, turns the
 * direction of writing or is no UTF-8. Widths are columns of a terminal: two for wide characters,
 * none for marks that join the one before.
 */
#ifndef CREMA_COLLECTOR_EMIT_EMIT_TEXT_H
#define CREMA_COLLECTOR_EMIT_EMIT_TEXT_H

#include "collector/emit/emit.h"

/* In place, never longer: each such character or byte becomes '?'. Returns s. */
char *text_clean(char *s);
/* Of clean text. */
size_t text_width(const char *s);
/* The same of its first word; *bytes: how long that is, up to a blank or the end. */
size_t text_word(const char *s, size_t *bytes);
/* Cuts the middle out of clean text, so that at most `to` columns are left; the end of a path says
 * most. Below 5 columns the end is cut off. */
void text_shorten(char *s, size_t to);
/* The same; `keep` columns of the beginning stay, at most to - 2. */
void text_cut(char *s, size_t to, size_t keep);
/* "task%s": "" of one, else "s" */
static inline const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* A paragraph: cleaned, wrapped at spaces to the sink's columns, its first line after `lead`, the
 * others after as many blanks. */
__attribute__((format(printf, 3, 4))) void text_paragraph(struct sink *s, const char *lead,
							  const char *fmt, ...);

#endif
