/* SPDX-License-Identifier: BSD-3-Clause */
/* page_rows.c - the most important rows of files, datasets and workers. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collector/metrics/groups.h"
#include "collector/page/page.h"

/*
 * Order of files: by bytes read again or outside of baskets, most first, unknown last; then by
 * bytes read, or received from the network if there are no read calls.
 */
struct ranked {
	const struct file_sum *f;
	struct layer_values v;
	double lost, read;
};

static double number_or(struct value v, double otherwise)
{
	bool known;
	double d = value_number(v, &known);

	return known ? d : otherwise;
}

static int by_lost(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->lost != y->lost)
		return x->lost > y->lost ? -1 : 1;
	if (x->read != y->read)
		return x->read > y->read ? -1 : 1;
	return strcmp(x->f->path, y->f->path);
}

static void rank(struct ranked *k, const struct file_sum *f)
{
	double again, outside;

	k->f = f;
	layers_values(f, &k->v);
	k->read = number_or(f->read_bytes, number_or(f->network_read_bytes, -1));
	again = number_or(k->v.reread_bytes, -1);
	outside = number_or(k->v.outside_basket_bytes, -1);
	k->lost = again < 0 || outside < 0 ? -1 : again + outside;
}

/* How the page formats a column's numbers. */
static const char *cell_way(const struct file_cell *c)
{
	size_t n = strlen(c->name);

	if (c->type == VALUE_TEXT)
		return "text";
	if (c->type == VALUE_REAL)
		return c->from == FILE_CELL_NS ? "seconds" : "times";
	return n > 6 && !strcmp(c->name + n - 6, "_bytes") ? "bytes" : "count";
}

/* For the chart of files on servers; the table has no column for it. */
#define FILE_FROM_SERVER "network_read_bytes"

void page_column(struct json *j, const char *name, const char *title, const char *way)
{
	if (!*title)
		return;
	emit_object(j, NULL);
	emit_value(j, "name", value_text(name));
	emit_value(j, "title", value_text(title));
	emit_value(j, "way", value_text(way));
	emit_end(j);
}

static void put_columns(struct json *j)
{
	const struct file_cell *c;

	emit_array(j, "columns");
	for (c = file_cells; c < file_cells + file_cell_count; c++)
		page_column(j, c->name, c->title, cell_way(c));
	emit_end(j);
}

static void put_file(const struct ranked *k, struct json *j)
{
	const struct file_cell *c;
	struct value v;

	emit_object(j, NULL);
	for (c = file_cells; c < file_cells + file_cell_count; c++) {
		if (!*c->title && strcmp(c->name, FILE_FROM_SERVER) != 0)
			continue;
		v = file_cell_value(c, k->f, &k->v);
		if (v.type == VALUE_TEXT)
			page_name(j, c->name, v.v.s);
		else
			emit_value(j, c->name, v);
	}
	emit_end(j);
}

static void put_files(const struct report *r, struct json *j)
{
	struct ranked *v = calloc(r->files.n + 1, sizeof(*v));
	size_t i;

	if (!v) {
		j->sink->error = -ENOMEM;
		return;
	}
	for (i = 0; i < r->files.n; i++) {
		rank(&v[i], &r->files.v[i]);
	}
	if (r->files.n)
		qsort(v, r->files.n, sizeof(*v), by_lost);
	emit_object(j, "files");
	emit_value(j, "total", value_uint(r->files.n));
	put_columns(j);
	emit_array(j, "rows");
	for (i = 0; i < r->files.n && i < PAGE_ROWS; i++)
		put_file(&v[i], j);
	emit_end(j);
	emit_end(j);
	free(v);
}

void page_classes(const struct tally *t, struct json *j)
{
	unsigned int i;

	emit_object(j, "classes");
	for (i = 0; i < CREMA_TIMES; i++)
		emit_value(j, class_name(i), tally_class_part(t, (enum crema_time_id)i));
	emit_value(j, "unclassified", value_rest(tally_unclassified_part(t), tally_wall(t)));
	emit_value(j, "unmeasured", tally_unmeasured(t));
	emit_end(j);
}

static void put_dataset(const struct group *g, struct json *j)
{
	const struct tally *t = &g->t;

	emit_object(j, NULL);
	page_name(j, "dataset", g->key);
	emit_value(j, "chunks", value_uint(t->attempts));
	emit_value(j, "events", sum_value(&t->events));
	emit_value(j, "wall_seconds", value_seconds(sum_value(&t->wall_ns)));
	emit_value(j, "cpu_seconds", tally_cpu(t));
	emit_value(j, "cpu_seconds_per_event", value_ratio(tally_cpu(t), sum_value(&t->events), 1));
	emit_value(j, "requested_bytes", tally_requested(t));
	emit_value(j, "read_bytes", sum_value(&t->count[CREMA_C_read_bytes]));
	emit_value(j, "storage_read_bytes", sum_value(&t->storage_read));
	emit_value(j, "basket_bytes", tally_baskets(t));
	emit_value(j, "read_amplification", tally_amplification(t));
	page_classes(t, j);
	emit_end(j);
}

static void put_datasets(const struct report *r, struct json *j)
{
	const struct groups *g = facts_datasets_shown(r->facts);
	const struct group **v = groups_sorted(g, groups_by_wall);
	size_t i;

	if (!v) {
		j->sink->error = -ENOMEM;
		return;
	}
	emit_object(j, "datasets");
	emit_value(j, "total", value_uint(g->n));
	emit_array(j, "rows");
	for (i = 0; i < g->n && i < PAGE_ROWS; i++)
		put_dataset(v[i], j);
	emit_end(j);
	emit_end(j);
	free(v);
}

void page_files(const struct report *r, struct json *j)
{
	put_files(r, j);
	put_datasets(r, j);
}

static void put_worker(const struct group *g, struct json *j)
{
	const struct worker *w = g->key;
	const struct tally *t = &g->t;

	emit_object(j, NULL);
	page_name(j, "worker", w->label);
	page_name(j, "host", w->host);
	emit_value(j, "threads", w->nthreads);
	emit_value(j, "tasks", value_uint(t->attempts));
	emit_value(j, "events", sum_value(&t->events));
	emit_value(j, "wall_seconds", value_seconds(sum_value(&t->wall_ns)));
	emit_value(j, "cpu_seconds", tally_cpu(t));
	emit_value(j, "read_bytes", sum_value(&t->count[CREMA_C_read_bytes]));
	emit_value(j, "storage_read_bytes", sum_value(&t->storage_read));
	emit_value(j, "silent", value_bool(w->silent));
	page_name(j, "end", w->goodbye ? w->goodbye_how : NULL);
	page_classes(t, j);
	emit_end(j);
}

/* All attempts by worker; of many workers the busiest and the idlest. */
void page_workers(const struct report *r, struct json *j)
{
	const struct group **v;
	const struct attempt *a;
	struct groups g = {0};
	struct classes c;
	size_t i;
	int rc = 0;

	for (i = 0; i < r->run->attempts.n && !rc; i++) {
		a = r->run->attempts.v[i];
		attempt_classes(a, &c);
		rc = groups_take(&g, a->worker, a, &c);
	}
	v = groups_sorted(&g, groups_by_wall);
	if (rc || !v)
		j->sink->error = -ENOMEM;
	emit_object(j, "balance");
	emit_value(j, "total", value_uint(g.n));
	emit_array(j, "rows");
	for (i = 0; v && i < g.n; i++) {
		if (g.n <= PAGE_WORKERS || i < PAGE_WORKERS / 2 || i >= g.n - PAGE_WORKERS / 2)
			put_worker(v[i], j);
	}
	emit_end(j);
	emit_end(j);
	free(v);
	groups_release(&g);
}
