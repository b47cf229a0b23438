/* SPDX-License-Identifier: BSD-3-Clause */
/* model_doing.c - the calls that a worker's tasks were in at its latest report. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collector/model/model.h"
#include "collector/model/model_map.h"

static void take(char *to, size_t n, struct text text)
{
	snprintf(to, n, "%.*s", (int)(text.ptr && text.len < n ? text.len : 0),
		 text.ptr ? text.ptr : "");
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

static int take_row(struct worker *w, const msgpack_object *row)
{
	struct doing *d;

	if (!get_text(row, "call").ptr)
		return 0;
	d = ARRAY_NEW(&w->doing);
	if (!d)
		return -ENOMEM;
	d->attempt = get_u64(row, "attempt", 0);
	d->since_boot_ns =
		earlier(get_u64(row, "call_boot_ns", 0), get_u64(row, "place_boot_ns", 0));
	take(d->call, sizeof(d->call), get_text(row, "call"));
	take(d->kind, sizeof(d->kind), get_text(row, "kind"));
	take(d->object, sizeof(d->object), get_text(row, "object"));
	take(d->line, sizeof(d->line), get_text(row, "line"));
	return 0;
}

int model_feed_doing(struct worker *w, const msgpack_object *map)
{
	const msgpack_object *rows = get(map, "rows");
	uint64_t boot_ns = get_u64(map, "boot_ns", 0);
	int rc = 0;

	if (boot_ns < w->doing_boot_ns)
		return 0;
	w->doing_boot_ns = boot_ns;
	w->doing.n = 0;
	for (uint32_t i = 0; rows && rows->type == MSGPACK_OBJECT_ARRAY &&
			     i < rows->via.array.size && w->doing.n < MODEL_DOING_ROWS && !rc;
	     i++)
		rc = take_row(w, &rows->via.array.ptr[i]);
	return rc;
}
