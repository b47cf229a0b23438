/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live_json_rows.c - the workers in live.json. Written straight into the answer: as a tree of
 * values, a thousand rows would keep the loop, and so every agent, waiting for 50 ms and more.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collector/serve/live_parts.h"
#include "common/frame.h"

#define MILLION 1000000u
#define KEY(text) text, sizeof(text) - 1 /* "\"name\":" and what stands before it */

static void put_u64(struct buf *out, uint64_t value)
{
	char digit[20];
	size_t n = sizeof(digit);

	do
		digit[--n] = (char)('0' + value % 10);
	while (value /= 10);
	buf_add(out, digit + n, sizeof(digit) - n);
}

static void put_null(struct buf *out)
{
	buf_add(out, "null", 4);
}

/* As live.h says: to a millionth, large ones to a whole number. */
static void put_real(struct buf *out, double value)
{
	double size = fabs(value);
	uint64_t millionths;
	char text[40];

	if (!isfinite(value)) {
		put_null(out);
		return;
	}
	if (size >= 0x1p53) {
		buf_add(out, text, (size_t)snprintf(text, sizeof(text), "%.17g", value));
		return;
	}
	millionths = size < 1e9 ? (uint64_t)(size * MILLION + 0.5) : 0;
	if (value < 0 && (millionths || size >= 1e9))
		buf_add(out, "-", 1);
	put_u64(out, size < 1e9 ? millionths / MILLION : (uint64_t)(size + 0.5));
	millionths %= MILLION;
	if (millionths)
		buf_add(out, text,
			(size_t)snprintf(text, sizeof(text), ".%06u", (unsigned int)millionths));
}

/* whole numbers that the workers sent as such */
static void put_whole(struct buf *out, double value)
{
	if (isnan(value) || fabs(value) > 0x1p53)
		put_null(out);
	else
		put_real(out, trunc(value));
}

/* Names are printable UTF-8 already: only what ends a text is left to be marked. */
static void put_text(struct buf *out, const char *text)
{
	size_t n;

	if (!*text) {
		put_null(out);
		return;
	}
	buf_add(out, "\"", 1);
	while (*text) {
		n = strcspn(text, "\"\\");
		buf_add(out, text, n);
		text += n;
		if (*text) {
			buf_add(out, "\\", 1);
			buf_add(out, text++, 1);
		}
	}
	buf_add(out, "\"", 1);
}

static void put_rates(struct buf *out, const struct live_worker *w)
{
	unsigned int i;

	buf_add(out, KEY(",\"tasks_per_second\":"));
	put_real(out, live_rate(w, LIVE_RATE_TASKS));
	buf_add(out, KEY(",\"events_per_second\":"));
	put_real(out, live_rate(w, LIVE_RATE_EVENTS));
	buf_add(out, KEY(",\"cpu\":"));
	put_real(out, live_rate(w, LIVE_RATE_CPU));
	buf_add(out, KEY(",\"bytes_per_second\":{"));
	for (i = 0; i < LIVE_LAYERS; i++) {
		buf_add(out, i ? ",\"" : "\"", i ? 2 : 1);
		buf_add(out, live_layer_id(i), strlen(live_layer_id(i)));
		buf_add(out, "\":", 2);
		put_real(out, live_rate(w, LIVE_RATE_LAYER + i));
	}
	buf_add(out, KEY("},\"threads_in\":{"));
	for (i = 0; i < CREMA_TIMES; i++) {
		buf_add(out, i ? ",\"" : "\"", i ? 2 : 1);
		buf_add(out, live_class_ids[i], strlen(live_class_ids[i]));
		buf_add(out, "\":", 2);
		put_real(out, live_rate(w, LIVE_RATE_CLASS + i));
	}
	buf_add(out, "}", 1);
}

static void put_row(struct buf *out, const struct live_worker *w, bool here, int64_t now_ms)
{
	const double unknown = (double)NAN;
	char hex[FRAME_HEX_BYTES];

	buf_add(out, KEY("{\"id\":"));
	put_text(out, frame_hex(hex, w->id));
	buf_add(out, KEY(",\"worker\":"));
	put_text(out, w->address);
	buf_add(out, KEY(",\"name\":"));
	put_text(out, w->name);
	buf_add(out, KEY(",\"host\":"));
	put_text(out, w->host);
	buf_add(out, KEY(",\"pid\":"));
	put_u64(out, w->pid);
	buf_add(out, KEY(",\"state\":"));
	put_text(out, here ? "connected" : "silent");
	buf_add(out, KEY(",\"threads\":"));
	put_whole(out, w->threads);
	buf_add(out, KEY(",\"running\":"));
	put_whole(out, here ? w->running : unknown);
	buf_add(out, KEY(",\"ready\":"));
	put_whole(out, here ? w->ready : unknown);
	buf_add(out, KEY(",\"executing\":"));
	put_whole(out, here ? w->executing : unknown);
	buf_add(out, KEY(",\"done\":"));
	put_whole(out, live_known(&w->row, LIVE_tasks_done) ? (double)w->row.value[LIVE_tasks_done]
							    : unknown);
	buf_add(out, KEY(",\"cpu_percent\":"));
	put_real(out, here ? w->cpu_percent : unknown);
	buf_add(out, KEY(",\"rss_bytes\":"));
	put_whole(out, here ? w->rss_bytes : unknown);
	buf_add(out, KEY(",\"limit_bytes\":"));
	put_whole(out, w->limit_bytes);
	buf_add(out, KEY(",\"heard_seconds\":"));
	put_real(out, (double)(now_ms - w->heard_ms) / 1e3);
	if (here)
		put_rates(out, w);
	buf_add(out, "}", 1);
}

/* The connected ones first. */
void live_json_rows(const struct live *live, struct buf *out)
{
	static const enum live_state order[] = {LIVE_CONNECTED, LIVE_SILENT};
	const struct live_worker *w;
	int64_t now = live_now_ms();
	uint64_t n = 0;
	size_t i;

	buf_add(out, KEY("\"worker_rows\":["));
	for (i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		for (w = live->workers; w; w = w->next) {
			if (live_state(w, now) != order[i] || n++ >= LIVE_JSON_WORKERS)
				continue;
			if (n > 1)
				buf_add(out, ",\n", 2);
			put_row(out, w, order[i] == LIVE_CONNECTED, now);
		}
	}
	buf_add(out, KEY("],\"worker_rows_cut\":"));
	put_u64(out, n > LIVE_JSON_WORKERS ? n - LIVE_JSON_WORKERS : 0);
}
