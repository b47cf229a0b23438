/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emit_json.h - streams one JSON value into a sink; tracks commas and nesting.
 *
 *	emit_object(j, NULL);  emit_value(j, "run", value_text(id));
 *	emit_array(j, "tasks"); ... emit_end(j);  emit_end(j);
 *
 * `name` is the member's name inside an object and NULL inside an array or at the top. Integers are
 * written as integers, doubles with up to 17 digits (they read back as the same number), unknown as
 * null. Any text results in valid JSON: control characters are escaped, bytes that are not UTF-8
 * become U+FFFD. Deeper than JSON_DEPTH is an error (-E2BIG) in the sink.
 */
#ifndef CREMA_COLLECTOR_EMIT_EMIT_JSON_H
#define CREMA_COLLECTOR_EMIT_EMIT_JSON_H

#include "collector/emit/emit.h"

#define JSON_DEPTH 32

#define JSON_NAME_BYTES 96 /* fits most names, with quotes and colon */

/* A name that many objects share, as it is written; 0 bytes if it needs escapes. */
struct json_name {
	const char *name;
	size_t n;
	char text[JSON_NAME_BYTES];
};

struct json {
	struct sink *sink;
	unsigned int depth;
	size_t members; /* of the outermost object or array, so far */
	bool pretty;	/* each member of the outer two levels on its own line */
	char close[JSON_DEPTH];
	bool filled[JSON_DEPTH];
};

void emit_init(struct json *j, struct sink *sink);
void emit_object(struct json *j, const char *name);
void emit_array(struct json *j, const char *name);
void emit_end(struct json *j);
void emit_value(struct json *j, const char *name, struct value v);
/*
 * Describes one thing by names and values, for JSON and for tables: a function for it calls put()
 * for each. `type` is the type of the column. emit_cell() is put() for JSON; its arg is the writer.
 */
typedef void (*cell_put)(void *arg, const char *name, enum value_type type, struct value v);
void emit_cell(void *arg, const char *name, enum value_type type, struct value v);
/* In cells_*.def: `put` writes a list into `j` as the member `member`. */
#define EMIT_LIST(name, put)                                                                       \
	{                                                                                          \
		const char *member = #name;                                                        \
		put;                                                                               \
	}
/* "name" and "name_at_least": the first is null if there may be more. */
void emit_at_least(struct json *j, const char *name, struct value at_least, bool may_be_more);
/* The same with a prepared name: for rows of which a report has a million. */
void json_name_init(struct json_name *name, const char *text);
void emit_ready(struct json *j, const struct json_name *name, struct value v);
/* Writes text that is JSON already, such as a number. */
void emit_raw(struct json *j, const char *name, const char *json);
/* Text of `n` bytes, embedded NULs included. */
void emit_text(struct json *j, const char *name, const char *text, size_t n);

#endif
