/* SPDX-License-Identifier: BSD-3-Clause */
/* servers.c - requests to servers and their latency: sums, JSON, table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/report/report.h"

#define TOP 8

static struct server_sum *sum_of(struct report *r, const struct server_row *row)
{
	const struct value zero = value_uint(0);
	struct server_sum *s;
	size_t i;

	for (i = 0; i < r->servers.n; i++) {
		s = &r->servers.v[i];
		if (s->server == row->server && s->scheme == row->scheme)
			return s;
	}
	s = ARRAY_NEW(&r->servers);
	if (!s)
		return NULL;
	*s = (struct server_sum){.server = row->server, .scheme = row->scheme};
	for (i = 0; i < CREMA_SERVER_NUMBERS; i++)
		s->number[i] = zero;
	return s;
}

static void take(struct server_sum *s, const struct server_row *row)
{
	report_merge(s->number, row->number, row_server, CREMA_SERVER_NUMBERS, false);
	for (size_t i = 0; i < CREMA_LATENCY_BUCKETS; i++)
		s->latency[i] += row->latency[i];
}

static int by_read(const void *pa, const void *pb)
{
	const struct server_sum *a = pa, *b = pb;
	double x = value_number(a->read_bytes, NULL), y = value_number(b->read_bytes, NULL);
	const char *s = a->server ? a->server : "", *t = b->server ? b->server : "";

	return x > y ? -1 : x < y ? 1 : strcmp(s, t);
}

int report_gather_servers(struct report *r)
{
	const struct model *m = r->run->model;
	struct server_sum *s;

	for (size_t i = 0; i < m->servers.n; i++) {
		if (!run_has_row(r->run, m->servers.v[i]->worker, m->servers.v[i]->span))
			continue;
		s = sum_of(r, m->servers.v[i]);
		if (!s)
			return -ENOMEM;
		take(s, m->servers.v[i]);
	}
	if (r->servers.n)
		qsort(r->servers.v, r->servers.n, sizeof(*r->servers.v), by_read);
	return 0;
}

/* Limits of a bucket in ns; the last one and the slowest request's own end at the largest
 * latency. */
static struct value bucket_least(size_t i)
{
	return value_uint(i ? UINT64_C(1) << (9 + i) : 0);
}

static struct value bucket_most(const struct server_sum *s, size_t i)
{
	uint64_t end = UINT64_C(1) << (10 + i);

	if (s->latency_max_ns.type != VALUE_UINT)
		return i + 1 < CREMA_LATENCY_BUCKETS ? value_uint(end) : value_null();
	if (i + 1 < CREMA_LATENCY_BUCKETS && end < s->latency_max_ns.v.u)
		return value_uint(end);
	return s->latency_max_ns;
}

/* The bucket with the request of that rank; CREMA_LATENCY_BUCKETS if there is none. */
static size_t bucket_of(const struct server_sum *s, double share)
{
	uint64_t all = 0, below = 0;
	size_t i;

	for (i = 0; i < CREMA_LATENCY_BUCKETS; i++)
		all += s->latency[i];
	for (i = 0; i < CREMA_LATENCY_BUCKETS; i++) {
		below += s->latency[i];
		if (below && (double)below >= share * (double)all)
			break;
	}
	return i;
}

/* [least, most]: the resolution of the buckets. */
void server_quantile_json(const struct server_sum *s, struct json *j, const char *name,
			  double share)
{
	size_t i = bucket_of(s, share);

	if (i == CREMA_LATENCY_BUCKETS) {
		emit_value(j, name, value_null());
		return;
	}
	emit_array(j, name);
	emit_value(j, NULL, value_seconds(bucket_least(i)));
	emit_value(j, NULL, value_seconds(bucket_most(s, i)));
	emit_end(j);
}

void server_buckets_json(const struct server_sum *s, struct json *j, const char *name)
{
	emit_array(j, name);
	for (size_t i = 0; i < CREMA_LATENCY_BUCKETS; i++) {
		if (!s->latency[i])
			continue;
		emit_object(j, NULL);
		emit_value(j, "least_s", value_seconds(bucket_least(i)));
		emit_value(j, "most_s", value_seconds(bucket_most(s, i)));
		emit_value(j, "requests", value_uint(s->latency[i]));
		emit_end(j);
	}
	emit_end(j);
}

void report_servers_json(const struct report *r, struct json *j)
{
	emit_array(j, "servers");
	for (size_t i = 0; i < r->servers.n; i++) {
		const struct server_sum *s = &r->servers.v[i];

		emit_object(j, NULL);
#define CELL(column, type, value) emit_value(j, #column, value);
#define LIST EMIT_LIST
#include "collector/report/cells_server.def"
#undef CELL
#undef LIST
		emit_end(j);
	}
	emit_end(j);
}

static void most_cell(struct grid *g, const struct server_sum *s, double share)
{
	size_t i = bucket_of(s, share);

	grid_value(g, i < CREMA_LATENCY_BUCKETS ? value_seconds(bucket_most(s, i)) : value_null(),
		   AS_SECONDS);
}

static void requests_cell(struct grid *g, const struct server_sum *s)
{
	char all[HUMAN_BYTES], failed[HUMAN_BYTES];

	if (value_number(s->failed, NULL) > 0)
		grid_printf(g, "%s, %s failed", human(s->requests, AS_COUNT, all),
			    human(s->failed, AS_COUNT, failed));
	else
		grid_value(g, s->requests, AS_COUNT);
}

static int by_latency(const void *pa, const void *pb)
{
	const struct file_sum *a = *(const struct file_sum *const *)pa;
	const struct file_sum *b = *(const struct file_sum *const *)pb;
	double x = value_number(a->latency_sum_ns, NULL), y = value_number(b->latency_sum_ns, NULL);

	return x > y ? -1 : x < y ? 1 : strcmp(a->path, b->path);
}

static void file_row(struct grid *g, const struct file_sum *f)
{
	grid_text(g, f->path);
	grid_value(g, f->requests, AS_COUNT);
	grid_value(g, f->network_read_bytes, AS_BYTES);
	grid_value(g, value_seconds(f->latency_sum_ns), AS_SECONDS);
	grid_value(g, value_ratio(value_seconds(f->latency_sum_ns), f->requests, 1), AS_SECONDS);
	grid_value(g, value_seconds(f->latency_max_ns), AS_SECONDS);
}

/* Longest waits first; over https and other protocols the file is unknown. */
static void put_remote_files(const struct report *r, struct sink *s, bool colour)
{
	const struct file_sum **file = calloc(r->files.n + 1, sizeof(*file));
	struct grid g;
	size_t i, n = 0;

	for (i = 0; file && i < r->files.n; i++) {
		if (value_number(r->files.v[i].requests, NULL) > 0)
			file[n++] = &r->files.v[i];
	}
	if (n) {
		qsort(file, n, sizeof(*file), by_latency);
		table_section(s, colour, "Files on servers, longest wait first");
		grid_init(&g, s, colour);
		grid_columns(&g, "<file", ">requests", ">read", ">waited", ">mean", ">longest",
			     NULL);
		for (i = 0; i < n && i < TOP; i++)
			file_row(&g, file[i]);
		grid_print(&g);
	}
	table_more(s, n, TOP);
	if (!file)
		s->error = -ENOMEM;
	free(file);
}

void report_tables_servers(const struct report *r, struct sink *s, bool colour)
{
	struct grid g;
	size_t i;

	put_remote_files(r, s, colour);
	if (!r->servers.n)
		return;
	table_section(s, colour,
		      "Servers: requests of all attempts (half and 99 % took at most ...)");
	grid_init(&g, s, colour);
	grid_columns(&g, "<server", ">requests", ">read", ">half", ">99 %", ">longest", NULL);
	for (i = 0; i < r->servers.n && i < TOP; i++) {
		const struct server_sum *one = &r->servers.v[i];

		if (one->server)
			grid_printf(&g, "%s://%s", one->scheme ? one->scheme : "", one->server);
		else
			grid_text(&g, "(servers beyond the table)");
		requests_cell(&g, one);
		grid_value(&g, one->read_bytes, AS_BYTES);
		most_cell(&g, one, 0.50);
		most_cell(&g, one, 0.99);
		grid_value(&g, value_seconds(one->latency_max_ns), AS_SECONDS);
	}
	grid_print(&g);
	table_more(s, r->servers.n, TOP);
}
