/* SPDX-License-Identifier: BSD-3-Clause */
/* emit_json.c - the streaming JSON writer. */
#include "collector/emit/emit_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"

void emit_init(struct json *j, struct sink *sink)
{
	memset(j, 0, sizeof(*j));
	j->sink = sink;
	j->pretty = true;
}

static void put_escape(struct json *j, unsigned char c)
{
	switch (c) {
	case '"':
		sink_puts(j->sink, "\\\"");
		break;
	case '\\':
		sink_puts(j->sink, "\\\\");
		break;
	case '\n':
		sink_puts(j->sink, "\\n");
		break;
	case '\t':
		sink_puts(j->sink, "\\t");
		break;
	case '\r':
		sink_puts(j->sink, "\\r");
		break;
	default:
		sink_printf(j->sink, "\\u%04x", c);
	}
}

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Copies the leading part that needs no escapes; returns its length. */
static size_t copy_plain(char *to, const char *text, size_t n)
{
	size_t i = 0;

	for (; i < n && is_plain((unsigned char)text[i]); i++)
		to[i] = text[i];
	return i;
}

static void put_text(struct json *j, const char *text, size_t n)
{
	const unsigned char *p = (const unsigned char *)text;
	char *room = sink_room(j->sink, n + 2);
	size_t i, start, len;

	if (!room)
		return;
	*room++ = '"';
	i = start = copy_plain(room, text, n);
	room[i] = '"';
	sink_take(j->sink, room + i + (i == n));
	if (i == n)
		return;
	while (i < n) {
		if (is_plain(p[i])) {
			i++;
			continue;
		}
		len = utf8_length(p + i, n - i);
		if (len > 1) {
			i += len;
			continue;
		}
		sink_put(j->sink, text + start, i - start);
		if (len)
			put_escape(j, p[i]);
		else
			sink_puts(j->sink, "\xef\xbf\xbd");
		i++;
		start = i;
	}
	sink_put(j->sink, text + start, i - start);
	sink_put(j->sink, "\"", 1);
}

void json_name_init(struct json_name *name, const char *text)
{
	char *to = name->text, *last = to + sizeof(name->text) - 3;

	name->name = text;
	*to++ = '"';
	for (; is_plain((unsigned char)*text) && to < last; text++)
		*to++ = *text;
	memcpy(to, "\": ", 3);
	name->n = *text ? 0 : (size_t)(to - name->text) + 3;
}

#define LEAD_BYTES (2 + JSON_DEPTH + JSON_NAME_BYTES)

/* Writes what precedes a value, including a name that needs no escapes. `at` has LEAD_BYTES. */
static char *write_lead(struct json *j, const struct json_name *name, char *at)
{
	bool more = j->depth && j->filled[j->depth - 1];

	if (more)
		*at++ = ',';
	if (j->depth && j->pretty && j->depth <= 2) {
		*at++ = '\n';
		memset(at, ' ', j->depth);
		at += j->depth;
	} else if (more) {
		*at++ = ' ';
	}
	if (j->depth)
		j->filled[j->depth - 1] = true;
	if (name) {
		memcpy(at, name->text, sizeof(name->text)); /* fixed length: no call */
		at += name->n;
	}
	return at;
}

static void put_lead(struct json *j, const struct json_name *name)
{
	char *at = sink_room(j->sink, LEAD_BYTES);

	if (j->depth == 1)
		j->members++;
	if (!at)
		return;
	sink_take(j->sink, write_lead(j, name, at));
	if (name && !name->n) {
		put_text(j, name->name, strlen(name->name));
		sink_puts(j->sink, ": ");
	}
}

static void lead(struct json *j, const char *name)
{
	struct json_name ready;

	if (name)
		json_name_init(&ready, name);
	put_lead(j, name ? &ready : NULL);
}

static void open_level(struct json *j, const char *name, char open, char close)
{
	lead(j, name);
	if (j->depth >= JSON_DEPTH) {
		j->sink->error = -E2BIG;
		return;
	}
	sink_put(j->sink, &open, 1);
	j->close[j->depth] = close;
	j->filled[j->depth] = false;
	j->depth++;
}

void emit_object(struct json *j, const char *name)
{
	open_level(j, name, '{', '}');
}

void emit_array(struct json *j, const char *name)
{
	open_level(j, name, '[', ']');
}

void emit_end(struct json *j)
{
	if (!j->depth)
		return;
	j->depth--;
	if (j->pretty && j->depth < 2 && j->filled[j->depth])
		sink_printf(j->sink, "\n%*s", (int)j->depth, "");
	sink_put(j->sink, &j->close[j->depth], 1);
	if (!j->depth)
		sink_puts(j->sink, "\n");
}

static void put_value(struct json *j, struct value v)
{
	switch (v.type) {
	case VALUE_UINT:
		sink_uint(j->sink, v.v.u);
		break;
	case VALUE_INT:
		sink_printf(j->sink, "%" PRId64, v.v.i);
		break;
	case VALUE_REAL:
		sink_real(j->sink, v.v.d);
		break;
	case VALUE_BOOL:
		sink_puts(j->sink, v.v.b ? "true" : "false");
		break;
	case VALUE_TEXT:
		put_text(j, v.v.s, strlen(v.v.s));
		break;
	default:
		sink_puts(j->sink, "null");
	}
}

void emit_value(struct json *j, const char *name, struct value v)
{
	lead(j, name);
	put_value(j, v);
}

void emit_cell(void *arg, const char *name, enum value_type type, struct value v)
{
	(void)type;
	emit_value(arg, name, v);
}

void emit_at_least(struct json *j, const char *name, struct value at_least, bool may_be_more)
{
	char lowest[48];

	snprintf(lowest, sizeof(lowest), "%s_at_least", name);
	emit_value(j, name, may_be_more ? value_null() : at_least);
	emit_value(j, lowest, at_least);
}

/* NULL: not a short one. */
static char *write_short(char *at, struct value v)
{
	switch (v.type) {
	case VALUE_UINT:
		return number_uint(at, v.v.u);
	case VALUE_REAL:
		return number_real(at, v.v.d);
	case VALUE_NULL:
		memcpy(at, "null", 4);
		return at + 4;
	case VALUE_BOOL:
		memcpy(at, v.v.b ? "true" : "false", 5);
		return at + 5 - v.v.b;
	default:
		return NULL;
	}
}

/* Written in one piece if possible: a report of a million tasks has 200 million of them. */
void emit_ready(struct json *j, const struct json_name *name, struct value v)
{
	char *at, *end = NULL;

	if (name->n && j->depth > 1 && v.type != VALUE_TEXT && v.type != VALUE_INT) {
		at = sink_room(j->sink, LEAD_BYTES + NUMBER_ROOM);
		end = at ? write_short(write_lead(j, name, at), v) : NULL;
	}
	if (end) {
		sink_take(j->sink, end);
		return;
	}
	put_lead(j, name);
	put_value(j, v);
}

void emit_text(struct json *j, const char *name, const char *text, size_t n)
{
	lead(j, name);
	put_text(j, text, n);
}

void emit_raw(struct json *j, const char *name, const char *json)
{
	lead(j, name);
	sink_puts(j->sink, json);
}
