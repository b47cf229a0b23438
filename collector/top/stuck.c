/* SPDX-License-Identifier: BSD-3-Clause */
/* stuck.c - the lines of `crema stuck`. */
#include "collector/top/stuck.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collector/emit/emit_table.h"
#include "collector/top/top.h"

#define TEXT_BYTES 300
#define THROUGH_SHOWN 4
#define HEARD_SECONDS 10.0 /* an agent is silent after this long */

static double number(const json_t *row, const char *key)
{
	const json_t *value = json_object_get(row, key);

	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* "" if unknown. */
static const char *text(char *out, const json_t *row, const char *key)
{
	top_clean(out, TEXT_BYTES, json_string_value(json_object_get(row, key)));
	return out;
}

static const char *seconds(char *out, double v)
{
	return human(value_real(v), AS_SECONDS, out);
}

static void put_worker(FILE *out, const json_t *row)
{
	char name[TEXT_BYTES], address[TEXT_BYTES], host[TEXT_BYTES];

	text(name, row, "name");
	text(address, row, "worker");
	text(host, row, "host");
	fprintf(out, "%s%s%s%s", name, *name && *address ? " " : "", address,
		*name || *address ? ", " : "");
	fprintf(out, "pid %.0f on %s", number(row, "pid"), *host ? host : "an unknown host");
}

static void put_chunk(FILE *out, const json_t *row)
{
	double from = number(row, "entrystart"), to = number(row, "entrystop");
	char dataset[TEXT_BYTES], file[TEXT_BYTES];

	text(dataset, row, "dataset");
	text(file, row, "filename");
	if (!*dataset && !*file)
		return;
	fprintf(out, "    chunk %s%s%s", dataset, *dataset && *file ? ": " : "", file);
	if (!isnan(from) && !isnan(to))
		fprintf(out, ", entries %.0f to %.0f", from, to);
	fputc('\n', out);
}

/* "on FILE", "on lock 0x55", "on the GIL". */
static void put_object(FILE *out, const json_t *row)
{
	char kind[TEXT_BYTES], object[TEXT_BYTES];

	text(kind, row, "kind");
	text(object, row, "object");
	if (!strcmp(kind, "GIL"))
		fputs(" for the GIL", out);
	else if (*object)
		fprintf(out, " on %s%s%s", kind, *kind ? " " : "", object);
}

static void put_call(FILE *out, const json_t *row)
{
	double in = number(row, "call_seconds"), place = number(row, "place_seconds");
	char call[TEXT_BYTES], a[HUMAN_BYTES], b[HUMAN_BYTES];

	if (!*text(call, row, "call")) {
		fprintf(out, "    runs: in no call that waits");
		if (!isnan(place))
			fprintf(out, ", in this function at each check for %s", seconds(a, place));
		fputc('\n', out);
		return;
	}
	fprintf(out, "    in %s", call);
	put_object(out, row);
	if (isnan(in))
		fprintf(out, ", seen there for %s\n", seconds(a, place));
	else if (place > in + 1)
		fprintf(out, " for %s, and at each check for %s\n", seconds(a, in),
			seconds(b, place));
	else
		fprintf(out, " for %s\n", seconds(a, in));
}

/* "through sock_recv_into (_socket), SSL_read (libssl.so.3)": from the line to the call. */
static void put_through(FILE *out, const json_t *row)
{
	const json_t *through = json_object_get(row, "through"), *name;
	char frame[TEXT_BYTES];
	size_t i;

	json_array_foreach(through, i, name)
	{
		if (i == THROUGH_SHOWN) {
			fputs(" ...", out);
			break;
		}
		top_clean(frame, sizeof(frame), json_string_value(name));
		fprintf(out, "%s%s", i ? ", " : "    through ", frame);
	}
	if (i)
		fputc('\n', out);
}

static void put_row(FILE *out, const json_t *row)
{
	char key[TEXT_BYTES], a[HUMAN_BYTES];
	double heard = number(row, "heard_seconds");

	fprintf(out, "%s  %s%s\n", seconds(a, number(row, "task_seconds")),
		*text(key, row, "key") ? key : "a task",
		json_is_true(json_object_get(row, "pool")) ? ", a pool thread" : "");
	fputs("    worker ", out);
	put_worker(out, row);
	if (heard > HEARD_SECONDS)
		fprintf(out, ", no message for %s", seconds(a, heard));
	fputc('\n', out);
	put_chunk(out, row);
	put_call(out, row);
	if (*text(key, row, "line"))
		fprintf(out, "    at %s\n", key);
	put_through(out, row);
}

/* How long it has been in its call, or running if it is in none. */
static double lasted(const json_t *row)
{
	double in_call = number(row, "seconds");

	return isnan(in_call) ? number(row, "task_seconds") : in_call;
}

static void put_paused(FILE *out, const json_t *row)
{
	double ratio = number(row, "rss_bytes") / number(row, "limit_bytes");
	char a[HUMAN_BYTES];

	fputs("paused by Dask: worker ", out);
	put_worker(out, row);
	if (!isnan(ratio))
		fprintf(out, ", at %s of its memory limit", human(value_real(ratio), AS_SHARE, a));
	if (!isnan(number(row, "ready")))
		fprintf(out, ", %.0f tasks ready", number(row, "ready"));
}

/* "fill-3 on w1 tcp://..., pid 7 on node: recv on peer 10.0.0.7:1094 for 23 s at a.py:3 f" */
static void put_short(FILE *out, const json_t *row)
{
	char a[TEXT_BYTES], b[HUMAN_BYTES];

	fprintf(out, "%s on ", *text(a, row, "key") ? a : "a task");
	put_worker(out, row);
	fprintf(out, ": %s", text(a, row, "call"));
	put_object(out, row);
	fprintf(out, " for %s", seconds(b, number(row, "seconds")));
	if (*text(a, row, "line"))
		fprintf(out, " at %s", a);
}

static void give(void (*put)(FILE *out, const json_t *row), const json_t *row,
		 void (*line)(void *arg, const char *text), void *arg)
{
	char *made = NULL;
	size_t n;
	FILE *out = open_memstream(&made, &n);

	if (!out)
		return;
	put(out, row);
	if (!fclose(out))
		line(arg, made);
	free(made);
}

size_t stuck_each(const json_t *live, double longer, void (*line)(void *arg, const char *text),
		  void *arg)
{
	const json_t *row;
	size_t i, found = 0;

	json_array_foreach(json_object_get(live, "worker_rows"), i, row)
	{
		if (json_is_true(json_object_get(row, "paused"))) {
			give(put_paused, row, line, arg);
			found++;
		}
	}
	json_array_foreach(json_object_get(live, "doing"), i, row)
	{
		if (number(row, "seconds") >= longer) {
			give(put_short, row, line, arg);
			found++;
		}
	}
	return found;
}

static void print_line(void *out, const char *text)
{
	fprintf(out, "%s\n", text);
}

int stuck_print(FILE *out, const char *json, size_t n, double longer)
{
	json_t *root = json_loadb(json, n, 0, NULL);
	const json_t *rows = json_object_get(root, "doing"), *row;
	char a[HUMAN_BYTES];
	size_t i, shown = 0;
	double cut = number(root, "doing_cut");

	if (!json_is_array(rows)) {
		json_decref(root);
		return -EBADMSG;
	}
	stuck_each(root, (double)INFINITY, print_line, out); /* paused workers */
	json_array_foreach(rows, i, row)
	{
		if (lasted(row) >= longer) {
			put_row(out, row);
			shown++;
		}
	}
	if (!shown)
		fprintf(out, "no task has been in one place for %s or longer; %.0f running\n",
			seconds(a, longer), number(json_object_get(root, "tasks"), "running"));
	if (cut > 0)
		fprintf(out, "%.0f more threads of tasks are not shown\n", cut);
	json_decref(root);
	return 0;
}
