/* SPDX-License-Identifier: BSD-3-Clause */
/* live_calls.c - the calls that the threads of running tasks are in: the latest from each
 * worker. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collector/emit/emit_json.h"
#include "collector/emit/emit_table.h"
#include "collector/live/live_parts.h"
#include "common/frame.h"
#include "common/symbols.h"

#define UNKNOWN ((double)NAN)

int live_calls_take(struct live *live, struct live_worker *w, const msgpack_object *map,
		    const uint8_t *p, size_t n)
{
	const msgpack_object *rows = get(map, "rows");
	uint64_t boot_ns = get_u64(map, "boot_ns", 0);
	int rc;

	if (boot_ns < w->doing_boot_ns)
		return 0;
	live_calls_forget(live, w);
	w->doing_boot_ns = boot_ns;
	if (!rows || rows->type != MSGPACK_OBJECT_ARRAY || !rows->via.array.size ||
	    n > CREMA_DOING_BYTES || live->doing_bytes + n > LIVE_DOING_MEMORY)
		return 0;
	rc = buf_add(&w->doing, p, n);
	live->doing_bytes += w->doing.len;
	return rc;
}

void live_calls_forget(struct live *live, struct live_worker *w)
{
	live->doing_bytes -= w->doing.len;
	buf_release(&w->doing);
}

/* Seconds from then until the worker's last message; NAN: unknown. */
static double age(const struct live_worker *w, const msgpack_object *row, const char *key)
{
	uint64_t boot_ns = get_u64(row, key, 0);

	if (!boot_ns)
		return UNKNOWN;
	return boot_ns < w->last_boot_ns ? (double)(w->last_boot_ns - boot_ns) / 1e9 : 0;
}

/* How long it has been in its place (call or code); 0: in no known call. */
static double lasted(const struct live_worker *w, const msgpack_object *row)
{
	double call = age(w, row, "call_boot_ns"), place = age(w, row, "place_boot_ns");

	if (!get_text(row, "call").ptr)
		return 0;
	return isnan(call) || place > call ? (isnan(place) ? 0 : place) : call;
}

/* The rows of a worker's message; NULL: none. Release it if not NULL. */
static const msgpack_object_array *open_rows(const struct live_worker *w, struct unpack *u)
{
	const msgpack_object *rows;

	if (!w->doing.len || unpack_open(u, w->doing.data, w->doing.len))
		return NULL;
	rows = u->root.via.array.size > 1 ? get(&u->root.via.array.ptr[1], "rows") : NULL;
	if (rows && rows->type == MSGPACK_OBJECT_ARRAY)
		return &rows->via.array;
	unpack_release(u);
	return NULL;
}

static void put_name(struct json *j, const msgpack_object *row, const char *key)
{
	char text[512];

	live_text(text, sizeof(text), get_text(row, key));
	emit_value(j, key, value_text(*text ? text : NULL));
}

static void put_number(struct json *j, const msgpack_object *row, const char *key)
{
	uint64_t v = get_u64(row, key, UINT64_MAX);

	emit_value(j, key, v == UINT64_MAX ? value_null() : value_uint(v));
}

/* A row to be shown. */
struct found {
	const struct live_worker *worker;
	uint32_t at;
	double seconds;
};

/* The rows that last longest, sorted. */
struct longest {
	size_t n, most;
	struct found v[LIVE_DOING_ROWS + 1];
};

static void keep(struct longest *to, const struct found *one)
{
	size_t at = to->n;

	while (at && to->v[at - 1].seconds < one->seconds)
		at--;
	if (at == to->most)
		return;
	if (to->n < to->most)
		to->n++;
	memmove(to->v + at + 1, to->v + at, (to->n - at - 1) * sizeof(*to->v));
	to->v[at] = *one;
}

/* Adds the longest of the worker's rows; returns how many rows it has. */
static uint64_t find(const struct live_worker *w, struct longest *to)
{
	const msgpack_object_array *rows;
	struct unpack u;
	uint64_t all;

	rows = open_rows(w, &u);
	if (!rows)
		return 0;
	for (uint32_t i = 0; i < rows->size; i++)
		keep(to, &(struct found){w, i, lasted(w, &rows->ptr[i])});
	all = rows->size + get_u64(&u.root.via.array.ptr[1], "cut", 0);
	unpack_release(&u);
	return all;
}

static void put_found(struct json *j, const struct found *found,
		      void (*put)(struct json *j, const struct found *found,
				  const msgpack_object *row))
{
	const msgpack_object_array *rows;
	struct unpack u;

	rows = open_rows(found->worker, &u);
	if (!rows)
		return;
	put(j, found, &rows->ptr[found->at]);
	unpack_release(&u);
}

static void put_call(struct json *j, const struct found *found, const msgpack_object *row)
{
	emit_object(j, "call");
	put_name(j, row, "call");
	put_name(j, row, "kind");
	put_name(j, row, "object");
	put_name(j, row, "line");
	emit_value(j, "seconds", value_real(found->seconds));
	emit_end(j);
}

void live_calls_longest(struct json *j, const struct live_worker *w)
{
	struct longest longest = {.most = 1};

	find(w, &longest);
	if (longest.n && longest.v[0].seconds > 0)
		put_found(j, longest.v, put_call);
	else
		emit_value(j, "call", value_null());
}

/* Of connected workers; NULL: none is known. */
static const struct found *find_longest(const struct live *live, struct longest *longest)
{
	const struct live_worker *w;
	int64_t now_ms = live_now_ms();

	*longest = (struct longest){.most = 1};
	for (w = live->workers; w; w = w->next) {
		if (live_state(w, now_ms) == LIVE_CONNECTED)
			find(w, longest);
	}
	return longest->n && longest->v[0].seconds > 0 ? longest->v : NULL;
}

double live_longest_call(const struct live *live)
{
	struct longest longest;
	const struct found *found = find_longest(live, &longest);

	return found ? found->seconds : UNKNOWN;
}

void live_calls_text(const struct live *live, char *line, size_t n)
{
	struct longest longest;
	const struct found *found = find_longest(live, &longest);
	char call[48], kind[16], object[128], at[128], key[96], seconds[HUMAN_BYTES];
	const msgpack_object_array *rows;
	const msgpack_object *row;
	struct unpack u;

	*line = '\0';
	rows = found ? open_rows(found->worker, &u) : NULL;
	if (!rows)
		return;
	row = &rows->ptr[found->at];
	live_text(call, sizeof(call), get_text(row, "call"));
	live_text(kind, sizeof(kind), get_text(row, "kind"));
	live_text(object, sizeof(object), get_text(row, "object"));
	live_text(at, sizeof(at), get_text(row, "line"));
	live_text(key, sizeof(key), get_text(row, "key"));
	snprintf(line, n, "%s%s%s%s%s for %s%s%s%s%s", call, *object ? " on " : "",
		 *object ? kind : "", *object && *kind ? " " : "", object,
		 human(value_real(found->seconds), AS_SECONDS, seconds), *at ? " at " : "", at,
		 *key ? ", task " : "", key);
	unpack_release(&u);
}

static void put_worker(struct json *j, const struct live_worker *w)
{
	double heard = (double)(live_now_ms() - w->heard_ms) / 1e3;
	char hex[FRAME_HEX_BYTES];

	emit_value(j, "id", value_text(frame_hex(hex, w->id)));
	emit_value(j, "worker", value_text(*w->address ? w->address : NULL));
	emit_value(j, "name", value_text(*w->name ? w->name : NULL));
	emit_value(j, "host", value_text(*w->host ? w->host : NULL));
	emit_value(j, "pid", value_uint(w->pid));
	emit_value(j, "heard_seconds", value_real(heard));
}

/* An array of frames; null: unknown. */
static void put_frames(struct json *j, const msgpack_object *row, const char *key)
{
	const msgpack_object *stack = get(row, key);
	struct text frame;
	char text[512];

	if (!stack || stack->type != MSGPACK_OBJECT_ARRAY) {
		emit_value(j, key, value_null());
		return;
	}
	emit_array(j, key);
	for (uint32_t i = 0; i < stack->via.array.size; i++) {
		if (!object_text(&stack->via.array.ptr[i], &frame))
			continue;
		live_text(text, sizeof(text), frame);
		emit_value(j, NULL, value_text(text));
	}
	emit_end(j);
}

/* Frames of the C library and of the interpreter: they are named by the call and the line. */
static bool is_plumbing(const char *library)
{
	return symbols_of_libc(library) || !strncmp(library, "libpython", 9) ||
	       !strncmp(library, "python", 6);
}

/* "sock_recv_into (_socket)", "SSL_read (libssl.so.3)": from the line to the call. */
static void put_through(struct json *j, const msgpack_object *row)
{
	const msgpack_object *stack = get(row, "native");
	struct text frame;
	char text[512], *library, *version;

	if (!stack || stack->type != MSGPACK_OBJECT_ARRAY) {
		emit_value(j, "through", value_null());
		return;
	}
	emit_array(j, "through");
	for (uint32_t i = stack->via.array.size; i-- > 0;) {
		if (!object_text(&stack->via.array.ptr[i], &frame))
			continue;
		live_text(text, sizeof(text) - 3, frame);
		library = strrchr(text, ' ');
		if (is_plumbing(library ? library + 1 : text) || !strcmp(text, "?"))
			continue;
		if (library) {
			memmove(library + 2, library + 1, strlen(library));
			library[1] = '(';
			/* "_socket", not "_socket.cpython-311-x86_64-linux-gnu.so" */
			version = strstr(library, ".cpython-");
			strcpy(version ? version : library + strlen(library), ")");
		}
		emit_value(j, NULL, value_text(text));
	}
	emit_end(j);
}

static void put_row(struct json *j, const struct found *found, const msgpack_object *row)
{
	static const char *const texts[] = {"key",     "prefix",   "span",  "function",
					    "dataset", "filename", "call",  "kind",
					    "object",  "line",	   "state", "wchan"};
	static const char *const numbers[] = {"entrystart", "entrystop", "attempt", "thread"};
	const struct live_worker *w = found->worker;
	size_t i;

	emit_object(j, NULL);
	put_worker(j, w);
	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		put_name(j, row, texts[i]);
	for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		put_number(j, row, numbers[i]);
	emit_value(j, "pool", value_bool(get_true(row, "pool")));
	emit_value(j, "task_seconds", value_real(age(w, row, "start_boot_ns")));
	emit_value(j, "call_seconds", value_real(age(w, row, "call_boot_ns")));
	emit_value(j, "place_seconds", value_real(age(w, row, "place_boot_ns")));
	emit_value(j, "seconds", value_real(found->seconds > 0 ? found->seconds : UNKNOWN));
	put_frames(j, row, "stack");
	put_frames(j, row, "native");
	put_through(j, row);
	emit_end(j);
}

void live_calls_rows(struct json *j, const struct live *live)
{
	struct longest longest = {.most = LIVE_DOING_ROWS};
	const struct live_worker *w;
	int64_t now_ms = live_now_ms();
	uint64_t all = 0;
	size_t i;

	for (w = live->workers; w; w = w->next) {
		enum live_state state = live_state(w, now_ms);

		if (state == LIVE_CONNECTED || state == LIVE_SILENT)
			all += find(w, &longest);
	}
	emit_array(j, "doing");
	for (i = 0; i < longest.n; i++)
		put_found(j, &longest.v[i], put_row);
	emit_end(j);
	emit_value(j, "doing_cut", value_uint(all - longest.n));
}
