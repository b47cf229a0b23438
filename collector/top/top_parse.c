/* SPDX-License-Identifier: BSD-3-Clause */
/* top_parse.c - converts live.json to a struct without text that could control the terminal. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/emit/emit_table.h"
#include "collector/top/top.h"
#include "common/rows.h"
#include "common/utf8.h"

static double number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* json_string_value() may contain any characters but NUL. */
void top_clean(char *dst, size_t size, const char *text)
{
	size_t used = 0;

	for (; text && *text && used + 1 < size; text++) {
		if (!utf8_begins(*text))
			continue; /* the rest of a character: one '?' is enough */
		dst[used++] = *text >= 0x20 && *text < 0x7f ? *text : '?';
	}
	dst[used] = '\0';
}

static void take_classes(double *to, const json_t *rates)
{
	const json_t *classes = json_object_get(rates, "threads_in");
	unsigned int i;

	for (i = 0; i < CREMA_TIMES; i++)
		to[i] = number(classes, row_times[i].id);
}

/* "recv 23 s 10.0.0.1:80", "sem_wait 4 s lock 0x55" */
static void take_call(struct top_row *row, const json_t *call)
{
	const char *name = json_string_value(json_object_get(call, "call"));
	const char *kind = json_string_value(json_object_get(call, "kind"));
	const char *object = json_string_value(json_object_get(call, "object"));
	bool word = kind && (!strcmp(kind, "lock") || !strcmp(kind, "GIL"));
	char text[TOP_CALL_BYTES + 300], seconds[HUMAN_BYTES];

	row->call_seconds = number(call, "seconds");
	if (!name || !(row->call_seconds >= TOP_CALL_SECONDS))
		return;
	snprintf(text, sizeof(text), "%.40s %s%s%s%s%.200s", name,
		 human(value_real(row->call_seconds), AS_SECONDS, seconds), word ? " " : "",
		 word ? kind : "", object ? " " : "", object ? object : "");
	top_clean(row->call, sizeof(row->call), text);
}

static void take_row(struct top_row *row, const json_t *from)
{
	const json_t *bytes = json_object_get(from, "bytes_per_second");
	const char *name = json_string_value(json_object_get(from, "name"));
	const char *address = json_string_value(json_object_get(from, "worker"));
	const char *host = json_string_value(json_object_get(from, "host"));
	double wall = 0, waits = 0;
	char text[200];
	unsigned int i;

	if (address && strstr(address, "://"))
		address = strstr(address, "://") + 3;
	if (address)
		snprintf(text, sizeof(text), "%s%s%s", name ? name : "", name ? " " : "", address);
	else
		snprintf(text, sizeof(text), "%s:%.0f", host ? host : "?", number(from, "pid"));
	top_clean(row->name, sizeof(row->name), text);
	name = json_string_value(json_object_get(from, "state"));
	row->silent = !name || strcmp(name, "connected") != 0;
	row->heard = number(from, "heard_seconds");
	take_classes(row->threads_in, from);
	take_call(row, json_object_get(from, "call"));
	for (i = 0; i < CREMA_TIMES; i++) {
		if (isnan(row->threads_in[i]))
			continue;
		wall += row->threads_in[i];
		waits += i == CREMA_T_cpu ? 0 : row->threads_in[i];
	}
	row->value[TOP_run] = number(from, "running");
	row->value[TOP_ready] = number(from, "ready");
	row->value[TOP_tasks] = number(from, "tasks_per_second");
	row->value[TOP_cpu] = number(from, "cpu");
	row->value[TOP_memory] = number(from, "rss_bytes");
	row->value[TOP_limit] = row->value[TOP_memory] / number(from, "limit_bytes");
	row->value[TOP_read] = number(bytes, "read");
	row->value[TOP_storage] = number(bytes, "storage_read");
	row->value[TOP_network] = number(bytes, "network_read");
	row->value[TOP_unpacked] = number(bytes, "decompress_out");
	row->value[TOP_waits] = wall > 0 ? waits / wall : (double)NAN;
}

static int take_rows(struct top *top, const json_t *list)
{
	size_t i, n = json_array_size(list);

	top->rows = calloc(n ? n : 1, sizeof(*top->rows));
	if (!top->rows)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		take_row(&top->rows[i], json_array_get(list, i));
	top->n = n;
	return 0;
}

/* Older collectors have no "_at_least". */
static void take_losses(struct top *top, const json_t *complete)
{
	double lowest = number(complete, "records_lost_at_least");

	top->lost_records = number(complete, "records_lost");
	top->refused_records = number(complete, "records_refused");
	top->losses_known = !isnan(top->lost_records) || isnan(lowest);
	if (top->losses_known)
		return;
	top->lost_records = lowest;
	top->refused_records = number(complete, "records_refused_at_least");
}

static void take_cluster(struct top *top, const json_t *root)
{
	const json_t *workers = json_object_get(root, "workers");
	const json_t *tasks = json_object_get(root, "tasks");
	const json_t *rates = json_object_get(root, "rates");
	const json_t *bytes = json_object_get(rates, "bytes_per_second");
	const json_t *memory = json_object_get(root, "memory");
	const json_t *progress = json_object_get(root, "progress");
	const json_t *complete = json_object_get(root, "completeness");

	top_clean(top->version, sizeof(top->version),
		  json_string_value(json_object_get(root, "version")));
	top->uptime = number(root, "uptime_seconds");
	top->connected = number(workers, "connected");
	top->silent = number(workers, "silent");
	top->lost = number(workers, "lost");
	top->ended = number(workers, "ended");
	top->killed = number(workers, "killed");
	top->threads = number(workers, "threads");
	top->running = number(tasks, "running");
	top->ready = number(tasks, "ready");
	top->done = number(tasks, "done");
	top->ok = number(tasks, "ok");
	top->erred = number(tasks, "erred");
	top->tasks_killed = number(tasks, "killed");
	top->remaining = number(tasks, "remaining");
	top_clean(top->progress, sizeof(top->progress),
		  json_string_value(json_object_get(progress, "text")));
	top->share_done = number(progress, "done") / number(progress, "total");
	top->tasks = number(rates, "tasks_per_second");
	top->events = number(rates, "events_per_second");
	top->cpu = number(rates, "cpu");
	top->read = number(bytes, "read");
	top->mapped = number(bytes, "mapped");
	top->storage = number(bytes, "storage_read");
	top->network = number(bytes, "network_read");
	top->unpacked = number(bytes, "decompress_out");
	take_classes(top->threads_in, rates);
	top->rss = number(memory, "rss_bytes");
	top->limit = number(memory, "limit_bytes");
	top->spilled = number(memory, "spilled_bytes");
	top->largest = number(memory, "largest_ratio");
	top->near_limit = number(memory, "near_limit");
	top_clean(top->journal_error, sizeof(top->journal_error),
		  json_string_value(json_object_get(root, "journal_error")));
	top_clean(top->journals, sizeof(top->journals),
		  json_string_value(json_object_get(root, "journals_trouble")));
	top_clean(top->stall, sizeof(top->stall),
		  json_string_value(json_object_get(json_object_get(root, "state"), "text")));
	take_losses(top, complete);
}

int top_parse(struct top *top, const char *json, size_t n)
{
	json_t *root = json_loadb(json, n, 0, NULL);
	const json_t *rows = json_object_get(root, "worker_rows");
	struct top made = {0};
	int err;

	if (!json_is_object(root) || !json_is_array(rows)) {
		json_decref(root);
		return -EBADMSG;
	}
	take_cluster(&made, root);
	made.cut = (size_t)json_integer_value(json_object_get(root, "worker_rows_cut"));
	err = take_rows(&made, rows);
	json_decref(root);
	if (err)
		return err;
	top_release(top);
	*top = made;
	return 0;
}

void top_release(struct top *top)
{
	free(top->rows);
	memset(top, 0, sizeof(*top));
}
