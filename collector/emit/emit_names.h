/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emit_names.h - names of one column made shorter so that they stay different.
 *
 * names_shorten() cuts what the names that are too long have in common: first what they begin with,
 * then what they end with ("/store/mc/run2018A.root" and "/store/mc/run2018B.root" become
 * "..2018A.root" and "..2018B.root"). Only then is the middle cut out, where that leaves them
 * different. Different names that still look alike end in ~1, ~2, ... Names that fit stay as they
 * are.
 */
#ifndef CREMA_COLLECTOR_EMIT_EMIT_NAMES_H
#define CREMA_COLLECTOR_EMIT_EMIT_NAMES_H

#include <stddef.h>

/* Clean texts (text_clean()), in place, each to at most `to` columns: 0 or -ENOMEM. */
int names_shorten(char **names, size_t n, size_t to);

#endif
