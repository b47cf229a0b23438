/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics_files.c - the used share of each file, and its compression.
 *
 * Baskets that any task of the run used count once, however often and by however many workers they
 * were read. The result is known only if every worker's list of baskets is complete.
 */
#include "collector/metrics/metrics.h"
#include "collector/model/file_place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct use {			    /* of one file */
	const struct file_row *row; /* the first */
	bool several;		    /* other hosts have their own of this path */
	struct value size, basket_bytes, basket_raw_bytes;
	struct ranges baskets;
	bool incomplete;
};

static bool same(struct value a, struct value b)
{
	return a.type == VALUE_UINT && b.type == VALUE_UINT && a.v.u == b.v.u;
}

static int use_add(struct use *u, const struct file_row *f, bool first)
{
	u->incomplete |= !first && file_may_differ(u->row, u->size, f);
	if (first || f->size_bytes.type != VALUE_NULL)
		u->size = f->size_bytes;
	u->basket_bytes = first ? f->basket_bytes : value_plus(u->basket_bytes, f->basket_bytes);
	u->basket_raw_bytes =
		first ? f->basket_raw_bytes : value_plus(u->basket_raw_bytes, f->basket_raw_bytes);
	u->incomplete |= !same(f->basket_extent_bytes, f->basket_bytes) ||
			 !same(f->unique_basket_bytes, value_uint(f->baskets.bytes));
	return ranges_join(&u->baskets, &f->baskets);
}

static struct value used_bytes(const struct use *u)
{
	return u->incomplete ? value_null() : value_uint(u->baskets.bytes);
}

static struct value used_percent(const struct use *u)
{
	return value_ratio(used_bytes(u), u->size, 100);
}

static int by_file(const void *pa, const void *pb)
{
	const struct file_row *const *a = pa, *const *b = pb;

	return file_order(*a, *b);
}

static bool same_path(const struct file_row *a, const struct file_row *b)
{
	return !strcmp(a->path, b->path);
}

/* Calls see() for every data file with baskets used by the run's tasks, by path. */
static int each_use(const struct facts *f, void (*see)(void *arg, const struct use *u), void *arg)
{
	const struct model *m = f->run->model;
	const struct file_row **rows = calloc(m->files.n + 1, sizeof(*rows)), *row;
	struct use u;
	size_t i, k, n = 0;
	int rc = rows ? 0 : -ENOMEM;

	for (i = 0; rows && i < m->files.n; i++) {
		row = m->files.v[i];
		if (row->path && value_number(row->basket_bytes, NULL) > 0 &&
		    run_has_row(f->run, row->worker, row->span))
			rows[n++] = row;
	}
	if (n)
		qsort(rows, n, sizeof(*rows), by_file);
	for (i = 0; i < n && !rc; i = k) {
		memset(&u, 0, sizeof(u));
		u.row = rows[i];
		for (k = i; k < n && !rc && !file_order(rows[k], u.row); k++)
			rc = use_add(&u, rows[k], k == i);
		u.several = file_is_own(u.row) && ((i && same_path(rows[i - 1], u.row)) ||
						   (k < n && same_path(rows[k], u.row)));
		if (!rc)
			see(arg, &u);
		ranges_release(&u.baskets);
	}
	free(rows);
	return rc;
}

static void emit_use(void *arg, const struct use *u)
{
	struct buf name = BUF_INIT;
	struct json *j = arg;

	if (u->several && file_name_own(&name, u->row->path, u->row->worker))
		j->sink->error = -ENOMEM;
	emit_object(j, name.len ? (const char *)name.data : u->row->path);
	emit_value(j, "size_bytes", u->size);
	emit_value(j, "bytes_read", used_bytes(u));
	emit_value(j, "bytes_read_percent", used_percent(u));
	emit_value(j, "compression_ratio", value_ratio(u->basket_raw_bytes, u->basket_bytes, 1));
	emit_end(j);
	buf_release(&name);
}

void metric_per_file(const struct facts *f, const char *name, struct json *j)
{
	emit_object(j, name);
	if (each_use(f, emit_use, j))
		j->sink->error = -ENOMEM;
	emit_end(j);
}

static void add_percent(void *arg, const struct use *u)
{
	spread_add(arg, used_percent(u));
}

struct value metric_avg_bytes_read_percent(const struct facts *f)
{
	struct spread s = {0};

	return each_use(f, add_percent, &s) ? value_null() : spread_mean(&s);
}
