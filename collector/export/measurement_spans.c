/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measurement_spans.c - raw_span_metrics: {"(context, prefix, activity, unit)": value}.
 *
 * Dask's disk-read, disk-write, compress and decompress are about what it spills and sends. Where
 * roastcoffea draws them as the job's, this puts what the tasks did: bytes from and to storage, CPU
 * in codecs. Dask's own stay beside them as dask-disk-read and so on.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/export/measurement_parts.h"

struct rows {
	struct digest *v;
	size_t n, cap;
};

static const struct {
	const char *dask, *renamed;
} replaced[] = {
	{"disk-read", "dask-disk-read"},
	{"disk-write", "dask-disk-write"},
	{"compress", "dask-compress"},
	{"decompress", "dask-decompress"},
};

/* Units backwards: of one activity the plots keep the last, which is to be its bytes. */
static int by_names(const void *pa, const void *pb)
{
	const struct digest *a = pa, *b = pb;
	int c = text_order(a->context, b->context);

	if (!c)
		c = text_order(a->prefix, b->prefix);
	if (!c)
		c = text_order(a->activity, b->activity);
	return c ? c : text_order(b->unit, a->unit);
}

static int add(struct rows *rows, const struct digest *d)
{
	struct digest *new = ARRAY_NEW(rows);

	if (!new)
		return -ENOMEM;
	*new = *d;
	return 0;
}

static int add_digests(const struct facts *f, struct rows *rows)
{
	const struct model *m = f->run->model;
	struct digest d;
	size_t i, k, n;

	for (i = 0; f->dask && i < m->workers.n; i++) {
		for (k = 0; k < m->workers.v[i]->digests.n; k++) {
			d = m->workers.v[i]->digests.v[k];
			if (run_digest(f->run, d.span, d.prefix) != DIGEST_OWN)
				continue;
			for (n = 0; n < sizeof(replaced) / sizeof(*replaced); n++) {
				if (!text_order(d.activity, replaced[n].dask))
					d.activity = replaced[n].renamed;
			}
			if (add(rows, &d))
				return -ENOMEM;
		}
	}
	return 0;
}

static int add_value(struct rows *rows, const char *prefix, const char *activity, const char *unit,
		     struct value v)
{
	bool known;
	struct digest d = {
		.context = "execute", .prefix = prefix, .activity = activity, .unit = unit};

	d.value = value_number(v, &known);
	return known ? add(rows, &d) : 0;
}

static int add_tally(struct rows *rows, const char *prefix, const struct tally *t)
{
	int rc = add_value(rows, prefix, "disk-read", "bytes", sum_value(&t->storage_read));

	if (!rc)
		rc = add_value(rows, prefix, "disk-write", "bytes",
			       sum_value(&t->count[CREMA_C_storage_write_bytes]));
	if (!rc)
		rc = add_value(rows, prefix, "decompress", "seconds",
			       value_seconds(sum_value(&t->count[CREMA_C_decompress_cpu_ns])));
	if (!rc)
		rc = add_value(rows, prefix, "compress", "seconds",
			       value_seconds(sum_value(&t->count[CREMA_C_compress_cpu_ns])));
	return rc;
}

static int by_prefix(const void *pa, const void *pb)
{
	const struct attempt *const *a = pa, *const *b = pb;

	return text_order((*a)->prefix, (*b)->prefix);
}

/* What the counted attempts of each prefix did. */
static int add_attempts(const struct run *r, struct rows *rows)
{
	const struct attempt **v = calloc(r->attempts.n + 1, sizeof(*v));
	struct tally t;
	size_t i, n = 0;
	int rc = 0;

	if (!v)
		return -ENOMEM;
	for (i = 0; i < r->attempts.n; i++) {
		if (r->attempts.v[i]->counted && r->attempts.v[i]->prefix)
			v[n++] = r->attempts.v[i];
	}
	qsort(v, n, sizeof(*v), by_prefix);
	memset(&t, 0, sizeof(t));
	for (i = 0; i < n && !rc; i++) {
		tally_add(&t, v[i]);
		if (i + 1 < n && !by_prefix(&v[i], &v[i + 1]))
			continue;
		rc = add_tally(rows, v[i]->prefix, &t);
		memset(&t, 0, sizeof(t));
	}
	free(v);
	return rc;
}

static void put_row(const struct digest *d, double value, struct buf *key, struct json *j)
{
	const char *const names[] = {d->context, d->prefix, d->activity, d->unit};
	const char *known[4];
	size_t i, n = 0;

	for (i = 0; i < 4; i++) {
		if (names[i])
			known[n++] = names[i];
	}
	measurement_tuple(key, known, n, NULL, 0);
	if (key->error)
		j->sink->error = key->error;
	else
		emit_value(j, (const char *)key->data, value_real(value));
}

void measurement_spans(const struct facts *f, struct json *j)
{
	struct buf key = BUF_INIT;
	struct rows rows = {0};
	double sum = 0;
	size_t i;

	if (add_digests(f, &rows) || add_attempts(f->run, &rows))
		j->sink->error = -ENOMEM;
	if (rows.n)
		qsort(rows.v, rows.n, sizeof(*rows.v), by_names);
	emit_object(j, "raw_span_metrics");
	for (i = 0; i < rows.n; i++) {
		sum += rows.v[i].value;
		if (i + 1 < rows.n && !by_names(&rows.v[i], &rows.v[i + 1]))
			continue;
		put_row(&rows.v[i], sum, &key, j);
		sum = 0;
	}
	emit_end(j);
	buf_release(&key);
	free(rows.v);
}
