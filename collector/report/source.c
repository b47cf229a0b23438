/* SPDX-License-Identifier: BSD-3-Clause */
/* source.c - sampled time by line of the user's files, with their text. */
#include "collector/report/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/emit/emit_text.h"

#define TEXT_BYTES 200 /* of a line of code */
#define WIDE 100       /* columns */

struct timed_line {
	const struct line_place *place;
	struct line_sum sum;
	const struct read_line *read;
};

struct gathering {
	struct source *s;
	struct table table;
	ARRAY(struct timed_line *) lines;
};

static bool same_place(const void *item, const void *key)
{
	const struct line_place *a = ((const struct timed_line *)item)->place, *b = key;

	return a->file == b->file && a->line == b->line;
}

static struct timed_line *line_of(struct gathering *g, const struct line_place *place)
{
	uint64_t hash = hash_pair((uintptr_t)place->file, place->line);
	struct timed_line *found = table_find(&g->table, hash, same_place, place);

	if (found)
		return found;
	found = TABLE_NEW(&g->table, hash, &g->s->arena, &g->lines);
	if (!found)
		return NULL;
	found->place = place;
	return found;
}

/* Whether a place further in has the same file (line 0) or line: recursion counts once. */
static bool seen_before(const struct line_list *list, uint32_t at, bool whole_file)
{
	for (uint32_t i = 0; i < at; i++)
		if (list->place[i]->user && list->place[i]->file == list->place[at]->file &&
		    (whole_file || list->place[i]->line == list->place[at]->line))
			return true;
	return false;
}

static struct source_file *file_of(struct source *s, const char *file)
{
	struct source_file *f;

	for (size_t i = 0; i < s->files.n; i++)
		if (s->files.v[i].file == file || !strcmp(s->files.v[i].file, file))
			return &s->files.v[i];
	f = ARRAY_NEW(&s->files);
	if (f)
		f->file = file;
	return f;
}

static int take(struct gathering *g, const struct line_stack_row *row)
{
	bool own = !row->pool && !row->outside;
	struct line_sum sum = own ? row->sum : line_sum_bytes(&row->sum);

	for (uint32_t i = 0; i < row->list->depth; i++) {
		const struct line_place *p = row->list->place[i];
		struct timed_line *line;
		struct source_file *f;

		if (!p->user || !p->file || !p->line || seen_before(row->list, i, false))
			continue;
		line = line_of(g, p);
		f = file_of(g->s, p->file);
		if (!line || !f)
			return -ENOMEM;
		line_sum_add(&line->sum, &sum);
		if (!seen_before(row->list, i, true))
			f->seconds += sum.seconds;
	}
	return 0;
}

/* Adds what lines read, sampled or not. */
static int take_read(struct gathering *g, const struct read_line *read)
{
	struct source_file *f = file_of(g->s, read->file);
	struct line_place *p = arena_get(&g->s->arena, sizeof(*p));
	struct timed_line *line;

	if (!f || !p)
		return -ENOMEM;
	*p = (struct line_place){read->function, f->file, read->line, true};
	line = line_of(g, p);
	if (!line)
		return -ENOMEM;
	line->read = read;
	return 0;
}

/* The file's bytes with a terminating NUL. NULL: `why` has the reason. */
static const char *read_text(struct source_file *f, double run_start, struct buf *text)
{
	const char *why = NULL;
	size_t n = strlen(f->file);
	struct stat st;
	int fd;

	if (n < 4 || strcmp(f->file + n - 3, ".py") != 0)
		return "not a .py file";
	fd = open(f->file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return "not on this machine, or not readable";
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		why = "not a file of yours";
	else if (st.st_size > SOURCE_BYTES)
		why = "larger than 1 MiB";
	else if (buf_read(text, fd, SOURCE_BYTES + 1) || buf_add(text, "", 1))
		why = "not on this machine, or not readable";
	else
		f->changed =
			(double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec / 1e9 > run_start;
	close(fd);
	return why;
}

/* One line of code with tabs as blanks. */
static const char *keep_line(struct arena *arena, const char *text, size_t n)
{
	char line[TEXT_BYTES], *kept;
	size_t to = 0;

	for (size_t i = 0; i < n && to + 9 < sizeof(line); i++) {
		if (text[i] != '\t')
			line[to++] = text[i];
		else
			do
				line[to++] = ' ';
			while (to % 8);
	}
	while (to && (line[to - 1] == ' ' || line[to - 1] == '\r'))
		to--;
	line[to] = '\0';
	kept = arena_bytes(arena, to + 1);
	if (kept)
		memcpy(kept, line, to + 1);
	return kept;
}

/* Merges the lines of one file by number: those with time, and with text also those near them. */
struct merging {
	struct source *s;
	struct source_file *f;
	struct timed_line **timed;
	size_t n, at;  /* at: the first one that is not before the current line */
	uint64_t last; /* line that was written last */
};

static void put_row(struct merging *m, uint64_t line, const char *text, size_t n)
{
	struct source_row *row = &m->f->v[m->f->n];
	const struct timed_line *t = m->at < m->n ? m->timed[m->at] : NULL;

	if (m->f->n == SOURCE_ROWS) {
		m->f->left_out++;
		return;
	}
	row->line = line;
	row->text = text ? keep_line(&m->s->arena, text, n) : NULL;
	row->gap = m->last && line != m->last + 1;
	if (t && t->place->line == line) {
		row->function = t->place->function ? t->place->function : "?";
		row->sum = t->sum;
		row->read = t->read;
	}
	m->last = line;
	m->f->n++;
}

static void merge_text(struct merging *m, const char *text)
{
	uint64_t line = 1;
	const char *end;

	for (; *text; text = *end ? end + 1 : end, line++) {
		end = strchrnul(text, '\n');
		while (m->at < m->n && m->timed[m->at]->place->line < line)
			m->at++;
		if ((m->at < m->n && m->timed[m->at]->place->line <= line + SOURCE_AROUND) ||
		    (m->at && m->timed[m->at - 1]->place->line + SOURCE_AROUND >= line))
			put_row(m, line, text, (size_t)(end - text));
	}
}

static int fill_file(struct merging *m, double run_start)
{
	struct buf text = BUF_INIT;

	m->f->v = arena_get(&m->s->arena, SOURCE_ROWS * sizeof(*m->f->v));
	if (!m->f->v)
		return -ENOMEM;
	m->f->why = read_text(m->f, run_start, &text);
	if (!m->f->why)
		merge_text(m, (const char *)text.data);
	else
		for (m->at = 0; m->at < m->n; m->at++)
			put_row(m, m->timed[m->at]->place->line, NULL, 0);
	buf_release(&text);
	return 0;
}

static int by_place(const void *pa, const void *pb)
{
	const struct timed_line *a = *(struct timed_line *const *)pa;
	const struct timed_line *b = *(struct timed_line *const *)pb;

	if (a->place->file != b->place->file)
		return a->place->file < b->place->file ? -1 : 1;
	return a->place->line < b->place->line ? -1 : a->place->line > b->place->line;
}

static int by_seconds(const void *pa, const void *pb)
{
	const struct source_file *a = pa, *b = pb;

	if (a->seconds != b->seconds)
		return a->seconds > b->seconds ? -1 : 1;
	return text_order(a->file, b->file);
}

static int fill(struct gathering *g, double run_start)
{
	struct source *s = g->s;
	int rc = 0;

	if (!s->files.n)
		return 0;
	qsort(g->lines.v, g->lines.n, sizeof(*g->lines.v), by_place);
	qsort(s->files.v, s->files.n, sizeof(*s->files.v), by_seconds);
	if (s->files.n > SOURCE_FILES) {
		s->left_out = s->files.n - SOURCE_FILES;
		s->files.n = SOURCE_FILES;
	}
	for (size_t i = 0; i < s->files.n && !rc; i++) {
		struct merging m = {.s = s, .f = &s->files.v[i]};
		size_t from = 0;

		while (from < g->lines.n && g->lines.v[from]->place->file != m.f->file)
			from++;
		m.timed = g->lines.v + from;
		while (from + m.n < g->lines.n && m.timed[m.n]->place->file == m.f->file)
			m.n++;
		rc = fill_file(&m, run_start);
	}
	return rc;
}

int source_gather(struct source *s, const struct lines *l, const struct read_lines *reads,
		  const struct run *run)
{
	struct gathering g = {.s = s};
	int rc = 0;

	memset(s, 0, sizeof(*s));
	for (size_t i = 0; i < l->stacks.n && !rc; i++)
		rc = take(&g, l->stacks.v[i]);
	for (size_t i = 0; i < reads->v.n && !rc; i++)
		if (reads->v.v[i]->kind == READ_LINE)
			rc = take_read(&g, reads->v.v[i]);
	if (!rc)
		rc = fill(&g, run->start);
	table_release(&g.table);
	free(g.lines.v);
	return rc;
}

void source_release(struct source *s)
{
	free(s->files.v);
	arena_release(&s->arena);
}

/* Columns about reads, shown only if lines have some. */
struct shown_reads {
	bool any, all; /* all: there is room for share and decompression next to the code */
	bool opened;   /* lines opened what was read */
	struct value line, several, unknown; /* sums of bytes */
};

static struct shown_reads shown_reads(const struct read_lines *reads, size_t room)
{
	struct shown_reads r = {.all = room >= WIDE,
				.line = value_uint(0),
				.several = value_uint(0),
				.unknown = value_uint(0)};

	for (size_t i = 0; i < reads->v.n; i++) {
		const struct read_line *s = reads->v.v[i];
		struct value *to = s->kind == READ_LINE	     ? &r.line
				   : s->kind == READ_SEVERAL ? &r.several
				   : s->kind == READ_UNKNOWN ? &r.unknown
							     : NULL;

		r.any = r.any || (s->kind == READ_LINE && read_line_asked(s));
		r.opened = r.opened || value_number(s->opened.read_bytes, NULL) > 0;
		if (to)
			*to = value_plus(*to, column_bytes(s->number));
	}
	return r;
}

static void put_cells(const struct shown_reads *reads, const char *const cell[6], struct sink *out)
{
	sink_printf(out, " %9s", cell[0]);
	if (!reads->any || reads->all)
		sink_printf(out, " %7s", cell[1]);
	sink_printf(out, " %9s", cell[2]);
	if (reads->any)
		sink_printf(out, " %10s", cell[3]);
	if (reads->any && reads->all)
		sink_printf(out, " %12s", cell[4]);
	if (reads->opened)
		sink_printf(out, " %10s", cell[5]);
}

static void put_line(const struct source_row *row, const struct lines *l,
		     const struct shown_reads *reads, struct sink *out)
{
	char time[HUMAN_BYTES] = "", share[HUMAN_BYTES] = "", cpu[HUMAN_BYTES] = "";
	char bytes[HUMAN_BYTES] = "", unpack[HUMAN_BYTES] = "", opened[HUMAN_BYTES] = "";
	char code[TEXT_BYTES + 8];
	size_t room = sink_columns(out) -
		      (!reads->any  ? 38
		       : reads->all ? 62
				    : 41) -
		      (reads->opened ? 11 : 0);

	if (row->gap)
		sink_puts(out, "     ..\n");
	if (row->sum.samples) {
		human(value_real(row->sum.seconds), AS_SECONDS, time);
		human(value_real(lines_share(l, &row->sum)), AS_SHARE, share);
		human(value_real(row->sum.class_s[CREMA_T_cpu]), AS_SECONDS, cpu);
	}
	if (row->read && row->read->opened.line)
		human(row->read->opened.read_bytes, AS_BYTES, opened);
	if (row->read && read_line_asked(row->read)) {
		human(column_bytes(row->read->number), AS_BYTES, bytes);
		human(value_seconds(row->read->decompress_cpu_ns), AS_SECONDS, unpack);
	}
	if (row->text)
		snprintf(code, sizeof(code), "%s", row->text);
	else
		snprintf(code, sizeof(code), "(%.100s)", row->function);
	text_clean(code);
	text_cut(code, room, room - 2);
	sink_printf(out, "  %5" PRIu64, row->line);
	if (*code)
		put_cells(reads, (const char *[]){time, share, cpu, bytes, unpack, opened}, out);
	sink_printf(out, "%s%s\n", *code ? "  " : "", code);
}

static void put_reads(const struct shown_reads *r, struct sink *out)
{
	char line[HUMAN_BYTES], several[HUMAN_BYTES], unknown[HUMAN_BYTES];

	text_paragraph(out, "  ",
		       "read: bytes in the files of the columns that a line asked for first%s; "
		       "exact, without what the lines that it calls read. %s in all; %s more are "
		       "of columns that several lines asked for, and %s of columns for which no "
		       "line of yours is known",
		       r->all ? ", and the CPU time of decompressing them" : "",
		       human(r->line, AS_BYTES, line), human(r->several, AS_BYTES, several),
		       human(r->unknown, AS_BYTES, unknown));
}

void source_table(const struct source *s, const struct lines *l, const struct read_lines *reads,
		  struct sink *out, bool colour)
{
	const struct shown_reads r = shown_reads(reads, sink_columns(out));

	for (size_t i = 0; i < s->files.n; i++) {
		const struct source_file *f = &s->files.v[i];
		char title[512];

		snprintf(title, sizeof(title), "%.400s, time of each line with what it calls",
			 f->file);
		text_clean(title);
		table_section(out, colour, title);
		sink_printf(out, "  %5s", "line");
		put_cells(&r,
			  (const char *[]){"time", "share", "CPU", "read", "decompress", "opened"},
			  out);
		sink_puts(out, "\n");
		for (size_t k = 0; k < f->n; k++)
			put_line(&f->v[k], l, &r, out);
		if (f->left_out)
			sink_printf(out, "  .. %zu more\n", f->left_out);
		if (f->why)
			text_paragraph(out, "  ", "no code: the file is %s", f->why);
		else if (f->changed)
			text_paragraph(out, "  ",
				       "the file was changed after the run began: lines may have "
				       "moved");
	}
	if (s->left_out)
		sink_printf(out, "  .. %zu more files\n", s->left_out);
	if (r.any)
		put_reads(&r, out);
	if (r.opened)
		text_paragraph(
			out, "  ",
			"opened: bytes read through the descriptors that the line opened, by "
			"whatever line and thread; exact, and not in addition to \"read\"");
}
