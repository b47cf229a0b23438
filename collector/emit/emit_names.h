/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emit_names.h - shortens the names of a column so that they stay different.
 *
 * names_shorten() cuts the common part of the names that are too long: first at the beginning, then
 * at the end ("/store/mc/run2018A.root" and "/store/mc/run2018B.root" become "..2018A.root" and
 * "..2018B.root"). Then it cuts the middle, if that leaves them different. Different names that
 * still look alike end in ~1, ~2, ... Names that fit are unchanged.
 */
#ifndef CREMA_COLLECTOR_EMIT_EMIT_NAMES_H
#define CREMA_COLLECTOR_EMIT_EMIT_NAMES_H

#include <stddef.h>

/* Shortens clean texts (text_clean()) in place to at most `to` columns: 0 or -ENOMEM. */
int names_shorten(char **names, size_t n, size_t to);

#endif
