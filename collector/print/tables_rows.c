/* SPDX-License-Identifier: BSD-3-Clause */
/* tables_rows.c - the sections that list things: chunks, prefixes, codecs, files. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/metrics/groups.h"
#include "collector/print/print.h"
#include "collector/report/source.h"
#include "common/dirs.h"

#define TOP 8

static void put_spread(struct grid *g, const char *label, const struct spread *s, enum human as)
{
	bool known = s->n && !s->unknown;

	grid_text(g, label);
	grid_value(g, known ? value_real(s->min) : value_null(), as);
	grid_value(g, spread_mean(s), as);
	grid_value(g, known ? value_real(s->max) : value_null(), as);
	grid_value(g, spread_std(s), as);
}

void report_table_chunks(const struct report *r, struct sink *s, bool colour)
{
	const struct facts *f = r->facts;
	struct grid g;

	if (!f->chunks.attempts)
		return;
	table_section(s, colour, "Chunks");
	grid_init(&g, s, colour);
	grid_columns(&g, "<", ">least", ">mean", ">most", ">std", NULL);
	put_spread(&g, "time in process() (coffea)", &f->chunk_time, AS_SECONDS);
	put_spread(&g, "wall time of the whole task", &f->chunk_wall, AS_SECONDS);
	put_spread(&g, "time in process() per event", &f->time_per_event, AS_SECONDS);
	put_spread(&g, "events", &f->chunk_events, AS_COUNT);
	put_spread(&g, "memory growth", &f->chunk_memory, AS_BYTES);
	put_spread(&g, "memory growth per event", &f->memory_per_event, AS_BYTES);
	grid_print(&g);
}

/* Counted attempts by a name: datasets of chunks, or prefixes of tasks. */
static int by_wall(const void *pa, const void *pb)
{
	const struct group *a = *(const struct group *const *)pa,
			   *b = *(const struct group *const *)pb;

	return a->t.wall_ns.v > b->t.wall_ns.v ? -1 : a->t.wall_ns.v < b->t.wall_ns.v;
}

static void put_groups(const struct run *run, const struct groups *groups, const char *title,
		       const char *column, bool events, struct sink *s, bool colour)
{
	const struct group **v;
	const struct tally *t;
	struct grid g;
	size_t i;

	if (!groups->n)
		return;
	v = groups_sorted(groups, by_wall);
	if (!v) {
		s->error = -ENOMEM;
		return;
	}
	table_section(s, colour, title);
	grid_init(&g, s, colour);
	grid_columns(&g, column, events ? ">chunks" : ">tasks", ">wall", ">CPU", ">read",
		     ">unpacked", events ? ">events" : ">storage", NULL);
	for (i = 0; i < groups->n && i < TOP; i++) {
		t = &v[i]->t;
		grid_text(&g, events ? v[i]->key : run_prefix_shown(run, v[i]->key));
		grid_value(&g, value_uint(t->attempts), AS_COUNT);
		grid_value(&g, value_seconds(sum_value(&t->wall_ns)), AS_SECONDS);
		grid_value(&g, tally_cpu(t), AS_SECONDS);
		grid_value(&g, sum_value(&t->count[CREMA_C_read_bytes]), AS_BYTES);
		grid_value(&g, sum_value(&t->count[CREMA_C_decompress_out_bytes]), AS_BYTES);
		if (events)
			grid_value(&g, sum_value(&t->events), AS_COUNT);
		else
			grid_value(&g, sum_value(&t->storage_read), AS_BYTES);
	}
	grid_print(&g);
	table_more(s, groups->n, TOP);
	free(v);
}

void report_table_datasets(const struct report *r, struct sink *s, bool colour)
{
	put_groups(r->run, facts_datasets_shown(r->facts), "Datasets", "<dataset", true, s, colour);
}

void report_table_prefixes(const struct report *r, struct sink *s, bool colour)
{
	struct groups prefixes = {0};
	const struct attempt *a;
	struct classes c;
	size_t i;

	for (i = 0; i < r->run->attempts.n; i++) {
		a = r->run->attempts.v[i];
		if (!facts_shows(r->facts, a))
			continue;
		attempt_classes(a, &c);
		if (groups_take(&prefixes, a->prefix, a, &c))
			s->error = -ENOMEM;
	}
	put_groups(r->run, &prefixes, "Task prefixes", "<prefix", false, s, colour);
	groups_release(&prefixes);
}

/* "cramjam.cramjam" and "lz4.frame._frame" are too long for a narrow column. */
static void put_library(struct grid *g, const char *library)
{
	size_t n = strlen(library), half = n / 2;
	const char *inner = strstr(library, "._");

	if (inner)
		grid_printf(g, "%.*s", (int)(inner - library), library);
	else if (n % 2 && library[half] == '.' && !memcmp(library, library + half + 1, half))
		grid_printf(g, "%.*s", (int)half, library);
	else
		grid_text(g, library);
}

void report_table_codecs(const struct report *r, struct sink *s, bool colour)
{
	const struct codec_sum *c;
	struct value rate;
	struct grid g;
	size_t i;

	if (!r->codecs.n)
		return;
	table_section(s, colour, "Codecs: decompression of all attempts");
	grid_init(&g, s, colour);
	grid_columns(&g, "<codec", "<library", ">calls", ">in", ">out", ">ratio", ">CPU", ">speed",
		     NULL);
	for (i = 0; i < r->codecs.n; i++) {
		c = &r->codecs.v[i];
		if (!value_number(c->decompress.calls, NULL))
			continue;
		grid_text(&g, c->codec);
		put_library(&g, c->library);
		grid_value(&g, c->decompress.calls, AS_COUNT);
		grid_value(&g, c->decompress.in_bytes, AS_BYTES);
		grid_value(&g, c->decompress.out_bytes, AS_BYTES);
		grid_value(&g, value_ratio(c->decompress.out_bytes, c->decompress.in_bytes, 1),
			   AS_TIMES);
		grid_value(&g, value_seconds(c->decompress.cpu_ns), AS_SECONDS);
		rate = value_ratio(c->decompress.out_bytes, c->decompress.cpu_ns, 1e3);
		grid_value(&g, rate, AS_MBS);
	}
	grid_print(&g);
}

static bool was_read(const struct file_sum *f)
{
	return value_number(f->read_bytes, NULL) + value_number(f->mapped_bytes, NULL) > 0;
}

/* The line of user code that opened it, and how many more did. */
static void opened_at(struct grid *g, const struct file_sum *f)
{
	size_t n = f->opened.n;

	if (n > 1)
		grid_printf(g, "%s (+%zu)", dirs_base(f->opened.v[0].line, ""), n - 1);
	else
		grid_text(g, n ? dirs_base(f->opened.v[0].line, "") : "-");
}

static void file_line(struct grid *g, const struct file_sum *f, const char *name, bool opened)
{
	grid_text(g, name);
	grid_value(g, f->size_bytes, AS_BYTES);
	grid_value(g, f->read_calls, AS_COUNT);
	grid_value(g, f->read_bytes, AS_BYTES);
	grid_value(g, f->mapped_bytes, AS_BYTES);
	grid_value(g, f->storage_read_bytes, AS_BYTES);
	if (opened)
		opened_at(g, f);
}

static void file_columns(struct grid *g, bool opened)
{
	if (opened)
		grid_columns(g, "<file", ">size", ">calls", ">read", ">mapped", ">storage",
			     "<opened at", NULL);
	else
		grid_columns(g, "<file", ">size", ">calls", ">read", ">mapped", ">storage", NULL);
}

void report_table_files(const struct report *r, struct sink *s, bool colour)
{
	struct grid g;
	size_t i, n = 0, folder = report_folder(r, was_read);
	bool opened = false;

	for (; n < r->files.n && was_read(&r->files.v[n]); n++) /* these come first */
		opened = opened || (n < TOP && r->files.v[n].opened.n);
	if (!n)
		return;
	table_section(s, colour, "Data files of all attempts, most read first");
	grid_init(&g, s, colour);
	file_columns(&g, opened);
	for (i = 0; i < n && i < TOP; i++)
		file_line(&g, &r->files.v[i], r->files.v[i].path + folder, opened);
	if (r->imports.has_rows)
		file_line(&g, &r->imports, "(Python modules)", opened);
	if (r->rest.has_rows)
		file_line(&g, &r->rest, "(not attributable to a file)", opened);
	grid_print(&g);
	report_folder_line(r, was_read, folder, s);
	table_more(s, n, TOP);
}

void report_table_sections(const struct report *r, struct sink *s, bool colour)
{
	sections_table(&r->sections, s, colour);
}

void report_table_columns(const struct report *r, struct sink *s, bool colour)
{
	read_columns_table(&r->columns, s, colour);
}

void report_table_baskets(const struct report *r, struct sink *s, bool colour)
{
	report_tables_bytes(r, s, colour);
}

void report_table_servers(const struct report *r, struct sink *s, bool colour)
{
	report_tables_servers(r, s, colour);
}

void report_table_lines(const struct report *r, struct sink *s, bool colour)
{
	lines_table(&r->lines, &r->read_lines, &r->facts->all, s, colour);
	lines_large_table(&r->lines, s, colour);
}

void report_table_source(const struct report *r, struct sink *s, bool colour)
{
	struct source source;
	int rc = source_gather(&source, &r->lines, &r->read_lines, r->run);

	if (rc)
		s->error = rc;
	else
		source_table(&source, &r->lines, &r->read_lines, s, colour);
	source_release(&source);
}

void report_table_waits(const struct report *r, struct sink *s, bool colour)
{
	blocking_table(r->blocking, r->run, s, colour);
}
