/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * opened.h - the lines of user code that opened a file, and the bytes that their descriptors moved.
 *
 * A list has each line once, at most OPENED_LINES of them; texts are interned and compared by
 * address. The owner releases it.
 */
#ifndef CREMA_COLLECTOR_MODEL_OPENED_H
#define CREMA_COLLECTOR_MODEL_OPENED_H

#include <msgpack.h>
#include <stddef.h>

#include "collector/emit/emit.h"
#include "ids.h"

#define OPENED_LINES 512u

struct model;

struct opened_line {
	const char *line; /* "FILE:LINE FUNCTION" */
	union {
		struct {
#define FILE_OPENED(name, ...) struct value name;
#include "rows.def"
		};
		struct value number[CREMA_OPENED_NUMBERS];
	};
};
struct opened_lines {
	struct opened_line *v;
	size_t n, cap;
};

/* Takes a FILE message's list: numbers only grow, and a line never disappears. 0 or -ENOMEM. */
int opened_take(struct opened_lines *to, struct model *m, const msgpack_object *list);
/* Adds the lines of another row of the file. 0 or -ENOMEM. */
int opened_add(struct opened_lines *to, const struct opened_lines *from);
void opened_release(struct opened_lines *o);

#endif
