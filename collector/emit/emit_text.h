/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emit_text.h - text of any origin on a terminal of 80 columns.
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
/* Cuts the middle out of clean text, so that at most `to` columns are left; the end of a path says
 * most. Below 5 columns the end is cut off. */
void text_shorten(char *s, size_t to);
/* A paragraph: cleaned, wrapped at spaces to TABLE_WIDTH columns, its first line after `lead`, the
 * others after as many blanks. */
__attribute__((format(printf, 3, 4))) void text_paragraph(struct sink *s, const char *lead,
							  const char *fmt, ...);

#endif
