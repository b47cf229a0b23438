/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bytes.c - requested, read and used bytes by dataset, by set of columns and by file, and
 * why coffea's bytesread grows when chunks are small.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/emit/emit_text.h"
#include "collector/metrics/groups.h"
#include "collector/report/report.h"

#define TOP 8
#define MOST_NAMES 12

/* Counted chunks, or all attempts at them, by their set of columns, in the order of the first
 * one. */
static int collect_columns(const struct run *run, bool all, struct groups *columns)
{
	const struct attempt *a;
	struct classes c;
	size_t i;
	int rc = 0;

	for (i = 0; i < run->attempts.n && !rc; i++) {
		a = run->attempts.v[i];
		if (!(a->counted || all) || !attempt_is_chunk(a))
			continue;
		attempt_classes(a, &c);
		rc = groups_take(columns, a->columns, a, &c);
	}
	return rc;
}

static void put_tally(const struct tally *t, struct json *j)
{
	static const struct {
		const char *name;
		enum crema_count_id id;
	} counts[] = {
		{"read_bytes", CREMA_C_read_bytes},
		{"mapped_bytes", CREMA_C_mapped_bytes},
		{"network_read_bytes", CREMA_C_network_read_bytes},
		{"large_read_bytes", CREMA_C_large_read_bytes},
		{"cached_bytes", CREMA_C_cached_bytes},
		{"readahead_bytes", CREMA_C_readahead_bytes},
		{"basket_calls", CREMA_C_basket_calls},
		{"page_calls", CREMA_C_page_calls},
		{"clusters_used", CREMA_C_clusters_used},
		{"basket_bytes", CREMA_C_basket_bytes},
		{"basket_raw_bytes", CREMA_C_basket_raw_bytes},
	};
	size_t i;

	emit_value(j, "chunks", value_uint(t->attempts));
	emit_value(j, "requested_bytes", tally_requested(t));
	for (i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		emit_value(j, counts[i].name, sum_value(&t->count[counts[i].id]));
	emit_value(j, "storage_read_bytes", sum_value(&t->storage_read));
	emit_value(j, "outside_basket_bytes", tally_outside(t));
	emit_value(j, "read_amplification", tally_amplification(t));
	emit_value(j, "requested_amplification",
		   value_ratio(tally_requested(t), tally_baskets(t), 1));
}

static void put_lines(struct json *j, const char *name, const char *lines)
{
	size_t n;

	if (!lines) {
		emit_value(j, name, value_null());
		return;
	}
	emit_array(j, name);
	for (; *lines; lines += n + (lines[n] == '\n')) {
		n = strcspn(lines, "\n");
		if (n)
			emit_text(j, NULL, lines, n);
	}
	emit_end(j);
}

/* Bytes that all attempts read again from the dataset's files; unknown if one file's are. */
static struct value reread_of(const struct report *r, const char *dataset)
{
	struct value sum = value_uint(0);
	struct layer_values v;
	size_t i, n = 0;

	for (i = 0; i < r->files.n; i++) {
		const struct file_sum *f = &r->files.v[i];

		if (f->datasets)
			return value_null();
		if (!f->chunks || f->dataset != dataset)
			continue;
		layers_values(f, &v);
		sum = value_plus(sum, v.reread_bytes);
		n++;
	}
	return n ? sum : value_null();
}

void report_bytes_json(const struct report *r, struct json *j)
{
	const struct groups *datasets = r->facts->datasets;
	struct groups columns = {0};
	size_t i;

	if (collect_columns(r->run, false, &columns))
		j->sink->error = -ENOMEM;
	emit_object(j, "bytes");
	emit_array(j, "datasets");
	for (i = 0; i < datasets->n; i++) {
		emit_object(j, NULL);
		emit_value(j, "dataset", value_text(datasets->v[i].key));
		put_tally(&datasets->v[i].t, j);
		emit_value(j, "files_reread_bytes", reread_of(r, datasets->v[i].key));
		emit_end(j);
	}
	emit_end(j);
	emit_array(j, "branch_sets");
	for (i = 0; i < columns.n; i++) {
		emit_object(j, NULL);
		put_lines(j, "columns", columns.v[i].key);
		put_tally(&columns.v[i].t, j);
		emit_end(j);
	}
	emit_end(j);
	emit_end(j);
	groups_release(&columns);
}

static size_t count_lines(const char *lines)
{
	size_t n = 1;

	for (; *lines; lines++)
		n += *lines == '\n';
	return n;
}

/* "14 columns", numbered if several sets have that many; names_line() has their names. */
static void set_name(const struct groups *sets, size_t i, char *out, size_t size)
{
	const char *lines = sets->v[i].key;
	size_t n = lines ? count_lines(lines) : 0, k, before = 0, same = 0;

	if (!lines) {
		snprintf(out, size, "unknown");
		return;
	}
	for (k = 0; k < sets->n; k++) {
		if (sets->v[k].key && count_lines(sets->v[k].key) == n) {
			before += k < i;
			same++;
		}
	}
	snprintf(out, size, same > 1 ? "%zu column%s (%zu)" : "%zu column%s", n, n == 1 ? "" : "s",
		 before + 1);
}

/* Their names, as many as fit. */
static void names_line(const struct groups *sets, size_t i, struct sink *s)
{
	const char *lines = sets->v[i].key, *p = lines;
	char lead[64], names[600] = "";
	size_t n = 0, total, length;

	if (!lines)
		return;
	set_name(sets, i, lead, sizeof(lead));
	total = count_lines(lines);
	for (; *p && n < MOST_NAMES; n++) {
		length = strcspn(p, "\n");
		if (strlen(names) + length + 3 > sizeof(names))
			break;
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%.*s",
			 n ? ", " : "", (int)length, p);
		p += length + (p[length] == '\n');
	}
	if (n < total)
		text_paragraph(s, "  ", "%s: %s and %zu more", lead, names, total - n);
	else
		text_paragraph(s, "  ", "%s: %s", lead, names);
}

static void put_groups(const struct groups *groups, bool columns, struct sink *s, bool colour)
{
	const struct tally *t;
	char name[64];
	struct grid g;
	size_t i;

	if (!groups->n)
		return;
	grid_init(&g, s, colour);
	grid_columns(&g, columns ? "<columns" : "<dataset", ">chunks", ">requested", ">read",
		     ">baskets", ">req./bask.", ">read/bask.", NULL);
	for (i = 0; i < groups->n && i < TOP; i++) {
		t = &groups->v[i].t;
		if (columns) {
			set_name(groups, i, name, sizeof(name));
			grid_text(&g, name);
		} else {
			grid_text(&g, groups->v[i].key);
		}
		grid_value(&g, value_uint(t->attempts), AS_COUNT);
		grid_value(&g, tally_requested(t), AS_BYTES);
		grid_value(&g, sum_value(&t->count[CREMA_C_read_bytes]), AS_BYTES);
		grid_value(&g, tally_baskets(t), AS_BYTES);
		grid_value(&g, value_ratio(tally_requested(t), tally_baskets(t), 1), AS_TIMES);
		grid_value(&g, tally_amplification(t), AS_TIMES);
	}
	grid_print(&g);
	table_more(s, groups->n, TOP);
	for (i = 0; columns && i < groups->n && i < TOP; i++)
		names_line(groups, i, s);
}

static bool has_chunks(const struct file_sum *f)
{
	return f->chunks > 0;
}

static void put_files(const struct report *r, struct sink *s, bool colour)
{
	struct layer_values v;
	struct grid g;
	size_t i, n = 0, folder = report_folder(r, has_chunks);

	for (i = 0; i < r->files.n && !has_chunks(&r->files.v[i]); i++)
		;
	if (i == r->files.n)
		return;
	table_section(s, colour, "Files of chunks, all attempts: each basket once");
	grid_init(&g, s, colour);
	grid_columns(&g, "<file", ">chunks", ">read", ">again", ">baskets", ">outside them",
		     ">cached", NULL);
	for (i = 0; i < r->files.n && n < TOP; i++) {
		const struct file_sum *f = &r->files.v[i];

		if (!has_chunks(f))
			continue;
		layers_values(f, &v);
		grid_text(&g, f->path + folder);
		grid_value(&g, value_uint(f->chunks), AS_COUNT);
		grid_value(&g, f->read_bytes, AS_BYTES);
		grid_value(&g, v.reread_bytes, AS_BYTES);
		grid_value(&g, v.read_basket_bytes, AS_BYTES);
		grid_value(&g, v.outside_basket_bytes, AS_BYTES);
		grid_value(&g, f->cached_bytes, AS_BYTES);
		n++;
	}
	grid_print(&g);
}

/* Why bytesread exceeds the bytes used, with this run's numbers. */
static void put_reason(const struct report *r, struct sink *s)
{
	const struct tally *t = &r->facts->chunks;
	struct value requested = tally_requested(t), baskets = tally_baskets(t);
	struct value outside = value_minus(requested, baskets), n = value_uint(t->attempts);
	char all[HUMAN_BYTES], used[HUMAN_BYTES], times[HUMAN_BYTES], each[HUMAN_BYTES];

	if (value_number(outside, NULL) <= 0 || !value_number(baskets, NULL))
		return;
	human(requested, AS_BYTES, all);
	human(baskets, AS_BYTES, used);
	human(value_ratio(requested, baskets, 1), AS_TIMES, times);
	human(value_ratio(outside, n, 1), AS_BYTES, each);
	text_paragraph(
		s, "  ",
		"coffea's bytesread, %s, is %s the %s of baskets used: each of the %zu chunks "
		"opens its file and requests %s of metadata (and gaps) again.",
		all, times, used, t->attempts, each);
}

void report_tables_bytes(const struct report *r, struct sink *s, bool colour)
{
	const struct groups *datasets = facts_datasets_shown(r->facts);
	bool all = facts_shows_all(r->facts);
	struct groups columns = {0};

	if (collect_columns(r->run, all, &columns))
		s->error = -ENOMEM;
	if (datasets->n) {
		table_section(s, colour,
			      all ? "Requested, read and used bytes of all attempts at chunks"
				  : "Requested, read and used bytes of counted chunks");
		put_groups(datasets, false, s, colour);
		put_groups(&columns, true, s, colour);
		put_reason(r, s);
		put_files(r, s, colour);
	}
	groups_release(&columns);
}
