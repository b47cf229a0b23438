/* SPDX-License-Identifier: BSD-3-Clause */
/* gather.c - sums over everything but attempts: files, codecs, the workers' own totals. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/model/file_place.h"
#include "collector/report/report.h"

static const char *const file_overflow = "(files beyond the table)";

/* NULL is "nothing yet", not "unknown": the first value is stored unchanged. */
static void add(struct value *sum, struct value v, bool first)
{
	*sum = first ? v : value_plus(*sum, v);
}

/* Indexes into r->files, from 1, by an interned name. */
struct file_index {
	struct report *r;
	struct table table;
};

/* A row's file; or, without a row, what the worker finds under this name. */
struct wanted_file {
	const struct report *r;
	const char *name;
	const struct worker *worker;
	const struct file_row *row;
};

static bool same_file(const void *item, const void *key)
{
	const struct wanted_file *w = key;
	const struct file_sum *s = &w->r->files.v[(uintptr_t)item - 1];

	if (w->row && w->row->path)
		return !file_order(s->row, w->row);
	return (s->path == w->name || s->name == w->name) &&
	       (!file_is_own(s->row) || file_same_host(s->row->worker, w->worker));
}

static bool same_path(const void *item, const void *key)
{
	const struct wanted_file *w = key;

	return w->r->files.v[(uintptr_t)item - 1].path == w->name;
}

static uint64_t name_hash(const char *name)
{
	return hash_pair((uint64_t)(uintptr_t)name, 0);
}

static struct file_sum *find(const struct file_index *files, const struct wanted_file *wanted,
			     bool (*same)(const void *item, const void *key))
{
	uintptr_t place =
		(uintptr_t)table_find(&files->table, name_hash(wanted->name), same, wanted);

	return place ? &files->r->files.v[place - 1] : NULL;
}

static struct file_sum *file_find(const struct file_index *files, const char *name,
				  const struct worker *worker)
{
	return find(files, &(struct wanted_file){files->r, name, worker, NULL}, same_file);
}

static struct file_sum *file_sum_of(struct file_index *files, const struct file_row *row)
{
	struct report *r = files->r;
	const char *path = row->path ? row->path : file_overflow;
	const struct wanted_file wanted = {r, path, row->worker, row};
	struct file_sum *s = find(files, &wanted, same_file);
	bool several = false;

	if (s)
		return s;
	s = find(files, &wanted, same_path);
	if (s)
		several = s->several = true;
	s = ARRAY_NEW(&r->files);
	if (!s || table_add(&files->table, name_hash(path), (void *)(uintptr_t)r->files.n))
		return NULL;
	s->path = path;
	s->row = row;
	s->several = several;
	return s;
}

static int file_take(struct file_index *files, const struct file_row *f)
{
	struct report *r = files->r;
	const char *kind = f->kind ? f->kind : "other";
	struct file_sum *s;
	bool first;

	if (!strcmp(kind, "import"))
		s = &r->imports;
	else if (!f->path && f->span)
		s = &r->rest;
	else
		s = file_sum_of(files, f);
	if (!s)
		return -ENOMEM;
	first = !s->has_rows;
	s->has_rows = true;
	s->storage = f->storage;
	s->filesystem = f->filesystem;
	if (s != &r->rest && s != &r->imports) {
		s->name = f->name ? f->name : s->name;
		if (layers_add(s, f, first))
			return -ENOMEM;
	}
	report_merge(s->number, f->number, row_file, CREMA_FILE_NUMBERS, first);
	return 0;
}

/* The files by path and by their readers' name; the first of several on a host. */
static int index_names(struct file_index *files)
{
	struct report *r = files->r;
	const struct file_sum *s;
	const char *name;
	size_t i;

	for (i = 0; i < r->files.n; i++) {
		s = &r->files.v[i];
		name = s->name;
		if (name && !file_find(files, name, s->row->worker) &&
		    table_add(&files->table, name_hash(name), (void *)(uintptr_t)(i + 1)))
			return -ENOMEM;
	}
	return 0;
}

/* What coffea reports that the counted chunks of each file requested. */
static void gather_chunks(const struct file_index *files)
{
	struct report *r = files->r;
	const struct worker *worker = NULL;
	struct file_sum *s = NULL;
	const struct attempt *a;
	struct value v;
	size_t i;

	for (i = 0; i < r->run->attempts.n; i++) {
		a = r->run->attempts.v[i];
		if (!a->counted || !attempt_is_chunk(a) || !a->filename)
			continue;
		if (!s || worker != a->worker || (s->path != a->filename && s->name != a->filename))
			s = file_find(files, a->filename, a->worker);
		worker = a->worker;
		if (!s)
			continue;
		v = attempt_u64(a, TASK_F_coffea_bytesread);
		add(&s->requested, v, !s->chunks);
		s->datasets |= s->chunks && s->dataset != a->dataset;
		s->dataset = s->datasets ? NULL : a->dataset;
		s->chunks++;
	}
}

/* Where several hosts have their own file of a path, its host is part of its name. */
static int name_hosts(struct report *r)
{
	struct buf name = BUF_INIT;
	struct file_sum *s;
	char *copy;
	int rc = 0;

	for (s = r->files.v; s < r->files.v + r->files.n && !rc; s++) {
		if (!s->several || !file_is_own(s->row))
			continue;
		buf_clear(&name);
		rc = file_name_own(&name, s->path, s->row->worker);
		copy = rc ? NULL : arena_get(&r->arena, name.len);
		rc = copy ? 0 : -ENOMEM;
		if (copy)
			s->path = memcpy(copy, name.data, name.len);
	}
	buf_release(&name);
	return rc;
}

struct codec_module {
	const char *function, *module;
};

static const struct codec_module codec_modules[] = {
#define CODEC(id, module, path, codec, direction, input, into) {module "." path, module},
#include "codecs.def"
#undef CODEC
};

/* The module of a codec function: from the table, else all but the last part of its name. */
static const char *library_of(struct report *r, const char *function)
{
	const char *dot;
	char *copy;
	size_t i;

	if (!function)
		return "unknown";
	for (i = 0; i < sizeof(codec_modules) / sizeof(*codec_modules); i++) {
		if (!strcmp(codec_modules[i].function, function))
			return codec_modules[i].module;
	}
	dot = strrchr(function, '.');
	copy = dot ? arena_get(&r->arena, (size_t)(dot - function) + 1) : NULL;
	if (!copy)
		return function;
	memcpy(copy, function, (size_t)(dot - function));
	return copy;
}

static int codec_take(struct report *r, const struct codec_row *c)
{
	const char *library = library_of(r, c->function);
	const char *codec = c->codec ? c->codec : "unknown";
	const struct value zero = value_uint(0);
	struct codec_side *side;
	struct codec_sum *s;
	size_t i;

	for (i = 0; i < r->codecs.n; i++) {
		if (!strcmp(r->codecs.v[i].codec, codec) &&
		    !strcmp(r->codecs.v[i].library, library))
			break;
	}
	s = i < r->codecs.n ? &r->codecs.v[i] : ARRAY_NEW(&r->codecs);
	if (!s)
		return -ENOMEM;
	if (!s->codec) {
		s->codec = codec;
		s->library = library;
		for (i = 0; i < CREMA_CODEC_NUMBERS; i++)
			s->decompress.number[i] = s->compress.number[i] = zero;
	}
	side = c->direction && !strcmp(c->direction, "compress") ? &s->compress : &s->decompress;
	report_merge(side->number, c->number, row_codec, CREMA_CODEC_NUMBERS, false);
	return 0;
}

static void counters_part(struct part *p, const struct counters *c)
{
#define IN_calls(v) (v)
#define IN_bytes(v) (v)
#define IN_ns(v) value_seconds(v)
#define PART(name, count, unit) p->name = IN_##unit(count_of(c, CREMA_C_##count));
#include "counters.def"
}

static void amounts_part(struct part *p, const struct amounts *all, const struct amounts *less)
{
	if (!less) {
		p->cpu_seconds = value_seconds(all->cpu_ns);
		p->storage_read_bytes = all->storage_read_bytes;
		p->storage_write_bytes = all->storage_write_bytes;
		return;
	}
	p->cpu_seconds = value_seconds(value_minus(all->cpu_ns, less->cpu_ns));
	p->storage_read_bytes = value_minus(all->storage_read_bytes, less->storage_read_bytes);
	p->storage_write_bytes = value_minus(all->storage_write_bytes, less->storage_write_bytes);
}

void worker_balance(const struct worker *w, struct balance *b)
{
	const struct totals *t = &w->totals;
	struct amounts tasks;

	memset(b, 0, sizeof(*b));
	if (!t->known)
		return;
	tasks.cpu_ns = value_plus(own_ns(&t->tasks, CREMA_T_cpu), pool_ns(&t->tasks, CREMA_T_cpu));
	tasks.storage_read_bytes = count_of(&t->tasks, CREMA_C_storage_read_bytes);
	tasks.storage_write_bytes = count_of(&t->tasks, CREMA_C_storage_write_bytes);
	amounts_part(&b->tasks, &tasks, NULL);
	amounts_part(&b->unattributed, &t->seen, &tasks);
	amounts_part(&b->unseen, &t->process, &t->seen);
	amounts_part(&b->process, &t->process, NULL);
	amounts_part(&b->children, &t->children, NULL);
	counters_part(&b->tasks, &t->tasks);
	counters_part(&b->unattributed, &t->unattributed);
}

_Static_assert(sizeof(struct part) % sizeof(struct value) == 0, "a part is only values");

static void part_add(struct part *sum, const struct part *p, bool first)
{
	struct value *to = (struct value *)sum;
	const struct value *from = (const struct value *)p;
	size_t i;

	for (i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		add(&to[i], from[i], first);
}

static void gather_workers(struct report *r)
{
	const struct worker *w;
	struct balance b;
	size_t i, k;

	for (i = 0; i < r->run->workers.n; i++) {
		w = r->run->workers.v[i];
		worker_balance(w, &b);
		part_add(&r->balance.tasks, &b.tasks, !i);
		part_add(&r->balance.unattributed, &b.unattributed, !i);
		part_add(&r->balance.unseen, &b.unseen, !i);
		part_add(&r->balance.process, &b.process, !i);
		part_add(&r->balance.children, &b.children, !i);
		for (k = 0; k < CREMA_TOTALS_NUMBERS; k++)
			add(&r->totals.number[k], w->totals.number[k], !i);
		add(&r->records_lost, value_uint(w->records_lost), !i);
		r->workers_with_notes += w->notes.n > 0;
		if (!w->silent)
			continue;
		if (!r->silent++ || w->last < r->silent_since)
			r->silent_since = w->last;
	}
	if (r->run->model->missing) /* what it has may fill the gaps */
		r->records_lost = value_null();
}

static double number(struct value v)
{
	return value_number(v, NULL);
}

static int by_read(const void *pa, const void *pb)
{
	const struct file_sum *a = pa, *b = pb;
	double x = number(a->read_bytes) + number(a->mapped_bytes);
	double y = number(b->read_bytes) + number(b->mapped_bytes);

	return x > y ? -1 : x < y ? 1 : strcmp(a->path, b->path);
}

static int by_in(const void *pa, const void *pb)
{
	const struct codec_sum *a = pa, *b = pb;
	double x = number(a->decompress.in_bytes), y = number(b->decompress.in_bytes);

	return x > y ? -1 : x < y ? 1 : strcmp(a->codec, b->codec);
}

/* What a worker's files beyond its table moved, in spans that found no row for their rest: of the
 * runs that it worked for it is unknown which. */
static bool is_beyond_spans(const struct report *r, const struct file_row *f)
{
	size_t i;

	if (f->path || f->span || !f->kind || strcmp(f->kind, "other") != 0)
		return false;
	for (i = 0; i < r->run->workers.n && r->run->workers.v[i] != f->worker; i++)
		;
	return i < r->run->workers.n;
}

static void hide_rest(struct report *r)
{
	for (size_t i = 0; i < CREMA_FILE_NUMBERS; i++)
		r->rest.number[i] = value_null();
}

static int gather_files(struct report *r)
{
	const struct model *m = r->run->model;
	struct file_index files = {.r = r};
	size_t i;
	int rc = 0;

	for (i = 0; i < m->files.n && !rc; i++) {
		if (run_has_row(r->run, m->files.v[i]->worker, m->files.v[i]->span))
			rc = file_take(&files, m->files.v[i]);
		else
			r->rest_unknown |= is_beyond_spans(r, m->files.v[i]);
	}
	if (r->rest_unknown)
		hide_rest(r);
	if (!rc)
		rc = index_names(&files);
	if (!rc)
		gather_chunks(&files);
	table_release(&files.table);
	return rc ? rc : name_hosts(r);
}

int report_gather(struct report *r, const struct run *run, const struct facts *facts)
{
	const struct model *m = run->model;
	size_t i;
	int rc;

	memset(r, 0, sizeof(*r));
	r->run = run;
	r->facts = facts;
	rc = gather_files(r);
	for (i = 0; i < m->codecs.n && !rc; i++) {
		if (run_has_row(run, m->codecs.v[i]->worker, m->codecs.v[i]->span))
			rc = codec_take(r, m->codecs.v[i]);
	}
	for (i = 0; i < r->files.n; i++)
		layers_end(&r->files.v[i]);
	if (r->files.n)
		qsort(r->files.v, r->files.n, sizeof(*r->files.v), by_read);
	if (r->codecs.n)
		qsort(r->codecs.v, r->codecs.n, sizeof(*r->codecs.v), by_in);
	if (!rc)
		rc = report_gather_servers(r);
	gather_workers(r);
	r->blocking = arena_get(&r->arena, sizeof(*r->blocking));
	if (!r->blocking)
		return -ENOMEM;
	if (!rc)
		rc = timeline_build(&r->timeline, run);
	if (!rc)
		rc = sections_gather(&r->sections, run);
	if (!rc)
		rc = read_columns_gather(&r->columns, run);
	if (!rc)
		rc = read_lines_gather(&r->read_lines, run, &r->columns, r->files.v, r->files.n);
	if (!rc)
		rc = lines_gather(&r->lines, run);
	return rc ? rc : blocking_gather(r->blocking, run);
}

void report_release(struct report *r)
{
	size_t i;

	for (i = 0; i < r->files.n; i++)
		layers_release(&r->files.v[i]);
	free(r->files.v);
	free(r->codecs.v);
	free(r->servers.v);
	sections_release(&r->sections);
	read_columns_release(&r->columns);
	read_lines_release(&r->read_lines);
	lines_release(&r->lines);
	if (r->blocking)
		blocking_release(r->blocking);
	timeline_release(&r->timeline);
	arena_release(&r->arena);
	memset(r, 0, sizeof(*r));
}
