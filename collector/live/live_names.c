/* SPDX-License-Identifier: BSD-3-Clause */
/* live_names.c - prefixes of tasks, printable names, and a worker's state by the clock. */
#include <string.h>

#include "collector/live/live_parts.h"
#include "common/clock.h"
#include "common/utf8.h"

int64_t live_now_ms(void)
{
	return (int64_t)(clock_mono_ns() / 1000000u);
}

void live_text(char *dst, size_t size, struct text text)
{
	const char *p = text.ptr;
	size_t left = p ? text.len : 0, used = 0, len, put;
	uint32_t c;
	bool shown;

	for (; left; p += len, left -= len, used += put) {
		len = utf8_take(p, left, &c);
		shown = len && utf8_is_shown(c);
		put = shown ? len : 1;
		if (used + put >= size)
			break;
		memcpy(dst + used, shown ? p : "?", put);
		len = len ? len : 1;
	}
	dst[used] = '\0';
}

static struct live_prefix *find_prefix(struct live *live, const char *name)
{
	size_t i, at;

	for (i = 0; i < live->prefixes; i++) {
		at = (live->prefix_hint + i) % live->prefixes;
		if (!strcmp(live->prefix[at].name, name)) {
			live->prefix_hint = at;
			return &live->prefix[at];
		}
	}
	if (live->prefixes == LIVE_PREFIXES || !strcmp(name, live->prefix[LIVE_PREFIXES].name))
		return &live->prefix[LIVE_PREFIXES];
	at = live->prefixes++;
	memcpy(live->prefix[at].name, name, strlen(name) + 1);
	return &live->prefix[at];
}

struct live_prefix *live_prefix_of(struct live *live, struct text text)
{
	char name[LIVE_PREFIX_BYTES + 1];
	struct live_prefix *last = &live->prefix[live->prefix_hint];

	/* Usually the same as before; a name in the table is already printable. */
	if (live->prefixes && text.len && text_is(text, last->name))
		return last;
	live_text(name, sizeof(name), text);
	return find_prefix(live, *name ? name : "(none)");
}

bool live_prefix_has_chunks(const struct live *live, struct text text)
{
	char name[LIVE_PREFIX_BYTES + 1];
	size_t i;

	live_text(name, sizeof(name), text);
	for (i = 0; i < live->prefixes; i++) {
		if (!strcmp(live->prefix[i].name, name))
			return live->prefix[i].has_chunks;
	}
	return false;
}

size_t live_prefixes(const struct live *live, const struct live_prefix **out)
{
	size_t i, n = 0;

	for (i = 0; i < live->prefixes; i++)
		out[n++] = &live->prefix[i];
	out[n++] = &live->prefix[LIVE_PREFIXES];
	return n;
}

enum live_state live_state(const struct live_worker *w, int64_t now_ms)
{
	int64_t age = now_ms - w->heard_ms;

	if (w->goodbye)
		return w->killed ? LIVE_KILLED_WORKER : LIVE_ENDED;
	if (w->connections > 0 && age <= LIVE_SILENT_MS)
		return LIVE_CONNECTED;
	return age > LIVE_LOST_MS ? LIVE_LOST : LIVE_SILENT;
}
