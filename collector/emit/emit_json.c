/* SPDX-License-Identifier: BSD-3-Clause */
/* emit_json.c - the streaming JSON writer. */
#include "collector/emit/emit_json.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/utf8.h"

#define NAME_BYTES 96 /* most names are shorter, with quotes and colon */

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

static void put_text(struct json *j, const char *text, size_t n)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t i = 0, start = 0, len;

	sink_put(j->sink, "\"", 1);
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

/* Behind `lead`: "name": , if it has room and needs no escapes; else 0. */
static size_t plain_name(char *lead, const char *name)
{
	size_t n = 0;

	lead[n++] = '"';
	for (; is_plain((unsigned char)*name) && n < NAME_BYTES - 3; name++)
		lead[n++] = *name;
	if (*name)
		return 0;
	memcpy(lead + n, "\": ", 3);
	return n + 3;
}

/* In one piece where it can be: a report of a million tasks has 200 million of them. */
static void put_lead(struct json *j, const char *name)
{
	bool more = j->depth && j->filled[j->depth - 1];
	char lead[JSON_DEPTH + NAME_BYTES];
	size_t n = 0, named;

	if (j->depth == 1)
		j->members++;
	if (more)
		lead[n++] = ',';
	if (j->depth && j->pretty && j->depth <= 2) {
		lead[n++] = '\n';
		memset(lead + n, ' ', j->depth);
		n += j->depth;
	} else if (more) {
		lead[n++] = ' ';
	}
	if (j->depth)
		j->filled[j->depth - 1] = true;
	named = name ? plain_name(lead + n, name) : 0;
	sink_put(j->sink, lead, n + named);
	if (name && !named) {
		put_text(j, name, strlen(name));
		sink_puts(j->sink, ": ");
	}
}

static void open_level(struct json *j, const char *name, char open, char close)
{
	put_lead(j, name);
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

void emit_value(struct json *j, const char *name, struct value v)
{
	put_lead(j, name);
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

void emit_text(struct json *j, const char *name, const char *text, size_t n)
{
	put_lead(j, name);
	put_text(j, text, n);
}

void emit_raw(struct json *j, const char *name, const char *json)
{
	put_lead(j, name);
	sink_puts(j->sink, json);
}
