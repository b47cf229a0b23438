/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emit_text.h - text of any origin on a terminal.
 *
 * Names of a run are hostile: text_clean() removes everything that moves the cursor, changes the
 * direction of writing or is not UTF-8. Widths are columns of a terminal: two for wide characters,
 * none for combining marks.
 */
#ifndef CREMA_COLLECTOR_EMIT_EMIT_TEXT_H
#define CREMA_COLLECTOR_EMIT_EMIT_TEXT_H

#include "collector/emit/emit.h"

/* In place, never longer: each such character or byte becomes '?'. Returns s. */
char *text_clean(char *s);
/* Of clean text. */
size_t text_width(const char *s);
/* The same for its first word; *bytes: its length, up to a blank or the end. */
size_t text_word(const char *s, size_t *bytes);
/* Cuts the middle out of clean text so that at most `to` columns remain: the end of a path carries
 * the most information. Below 5 columns it cuts the end. */
void text_shorten(char *s, size_t to);
/* The same, but keeps `keep` columns of the beginning, at most to - 2. */
void text_cut(char *s, size_t to, size_t keep);
/* "task%s": "" for one, else "s" */
static inline const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* A paragraph: cleaned and wrapped at spaces to the sink's columns. Its first line follows `lead`;
 * the others are indented by as many blanks. */
__attribute__((format(printf, 3, 4))) void text_paragraph(struct sink *s, const char *lead,
							  const char *fmt, ...);

#endif
