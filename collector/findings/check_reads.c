/* SPDX-License-Identifier: BSD-3-Clause */
/* check_reads.c - bytes that the analysis need not read: repeated in a task, outside of coffea, or
 * too many columns. */
#include <math.h>
#include <string.h>

#include "collector/findings/check.h"
#include "common/dirs.h"
#include "ids.h"

enum verdict finding_reread_in_task(const struct report *r, struct draft *d)
{
	const struct tally *t = facts_shown(r->facts);
	const struct sum *again = &t->count[CREMA_C_repeated_basket_bytes];
	const struct sum *all = &t->count[CREMA_C_basket_bytes];
	const struct attempt *a, *worst = NULL;
	double part, whole, one, most = 0, n;
	const char *opened;
	size_t i;

	if (!all->n || (!all->v && !all->unknown))
		return CHECK_IDLE;
	if (again->unknown || all->unknown)
		return draft_unknown(d, "repeated_basket_bytes");
	part = (double)again->v;
	whole = (double)all->v;
	if (!reaches(part, whole, d->check->first, d->check->second))
		return CHECK_QUIET;
	for (i = 0; i < r->run->attempts.n; i++) {
		a = r->run->attempts.v[i];
		one = value_number(count_of(&a->c, CREMA_C_repeated_basket_bytes), NULL);
		if (one > most)
			worst = a, most = one;
	}
	draft_evidence(d, "repeated_basket_bytes", value_real(part), "bytes");
	draft_evidence(d, "basket_bytes", value_real(whole), "bytes");
	draft_evidence(d, "percent", value_real(part / whole * 100), "%");
	draft_sentence(
		d,
		"%s of the baskets (%s of %s) had been decompressed before by the same task: it "
		"opens a file or reads a column repeatedly",
		draft_percent(d, part / whole * 100), draft_human(d, value_real(part), AS_BYTES),
		draft_human(d, value_real(whole), AS_BYTES));
	if (worst && worst->filename) {
		draft_evidence(d, "file", value_text(worst->filename), "");
		draft_sentence_more(d, "; most of them in file %s", draft_name(d, worst->filename));
	}
	/* More than once per task. */
	opened = draft_opened_by(d, r, CREMA_OPENED_N_descriptors, 2 * ((double)t->attempts + 1),
				 &n);
	if (opened)
		draft_sentence_more(d, "; %s opened files %s times", opened,
				    draft_human(d, value_real(n), AS_COUNT));
	draft_half(d, r);
	draft_cost_least(d, cost_part(part, whole, cost_of_baskets(r, d->costs)));
	return draft_found(d, part / whole);
}

static const char *const opened_names[CREMA_OPENED_NUMBERS] = {
#define FILE_OPENED(name, cell, unit, help) "opened_" #cell,
#include "rows.def"
};
static const char *const opened_units[CREMA_OPENED_NUMBERS] = {
#define FILE_OPENED(name, cell, unit, help) #unit,
#include "rows.def"
};

static const struct opened_line *opened_most(const struct opened_lines *sum, size_t number,
					     double *n)
{
	const struct opened_line *most = NULL;
	double one;

	*n = 0;
	for (size_t i = 0; i < sum->n; i++) {
		one = value_number(sum->v[i].number[number], NULL);
		if (one > *n)
			most = &sum->v[i], *n = one;
	}
	return most;
}

const char *draft_opened_by(struct draft *d, const struct report *r, size_t number, double all,
			    double *n)
{
	const struct opened_line *most;
	struct opened_lines sum = {0};
	const char *name = NULL;

	for (size_t i = 0; i < r->files.n; i++) {
		if (r->files.v[i].read_bytes.type != VALUE_NULL &&
		    opened_add(&sum, &r->files.v[i].opened))
			d->no_memory = true;
	}
	most = opened_most(&sum, number, n);
	if (most && *n * 2 >= all) {
		draft_evidence(d, "opened_at", value_text(most->line), "");
		draft_evidence(d, opened_names[number], value_real(*n), opened_units[number]);
		name = draft_name(d, dirs_base(most->line, ""));
	}
	opened_release(&sum);
	return name;
}

/* Names the file without baskets of which most was read: corrections, models, arrays. */
static void say_most_read(const struct report *r, struct draft *d)
{
	const struct file_sum *f, *worst = NULL;
	double one, most = 0;
	size_t i;

	for (i = 0; i < r->files.n; i++) {
		f = &r->files.v[i];
		one = value_number(f->read_bytes, NULL);
		if (one > most && !(value_number(f->basket_calls, NULL) > 0))
			worst = f, most = one;
	}
	if (!worst || !worst->path || most < d->check->second)
		return;
	draft_evidence(d, "file", value_text(worst->path), "");
	draft_evidence(d, "file_read_bytes", value_real(most), "bytes");
	draft_sentence_more(d, ", most of it (%s) from %s",
			    draft_human(d, value_real(most), AS_BYTES), draft_name(d, worst->path));
	draft_advise(d,
		     "Load %s once per worker, not in each process(): a function with "
		     "@functools.cache that calls open(), np.load() or correctionlib.",
		     draft_name(d, worst->path));
}

/* From this share on, what is read counts as written by tasks: the bytes show no more. */
#define WRITTEN_PERCENT 50

static void say_written(const struct tally *t, struct draft *d, double other)
{
	bool known;
	double written = value_number(sum_value(&t->count[CREMA_C_write_bytes]), &known);

	if (!known || written * 100 < other * WRITTEN_PERCENT)
		return;
	draft_evidence(d, "write_bytes", value_real(written), "bytes");
	draft_sentence_more(d, "; chunks also wrote %s to files",
			    draft_human(d, value_real(written), AS_BYTES));
	draft_advise(d, "Chunks write files and read about as much: keep these arrays in memory "
			"(variables, io.BytesIO) instead of temporary files.");
}

/* Below this, gc_pauses does not report it either. */
#define COLLECTED_SECONDS 1

/* Objects from json.load() keep the garbage collector busy: gc_pauses yields to this finding. */
static void say_collected(const struct report *r, struct draft *d)
{
	struct value s = digests_collected(r->facts);

	if (!(value_number(s, NULL) >= COLLECTED_SECONDS))
		return;
	draft_evidence(d, "collected_seconds", s, "s");
	draft_sentence_more(d,
			    "; full garbage collections took at least %s of CPU, caused by objects "
			    "made from these bytes (lists, dictionaries) or by gc.collect()",
			    draft_human(d, s, AS_SECONDS));
}

/* Bytes of the tasks' files without baskets. */
static double without_baskets(const struct report *r)
{
	double sum = 0;
	bool known;

	for (size_t i = 0; i < r->files.n; i++) {
		if (!(value_number(r->files.v[i].basket_calls, &known) > 0) && known)
			sum += value_number(r->files.v[i].read_bytes, NULL);
	}
	return sum;
}

static void say_bypassed(struct draft *d, double came, double requested, bool counted)
{
	const char *all = draft_human(d, value_real(came), AS_BYTES);
	const char *other = draft_human(d, value_real(came - requested), AS_BYTES);

	if (counted)
		draft_sentence(d,
			       "chunks read %s, of which coffea requested %s: %s bypassed coffea",
			       all, draft_human(d, value_real(requested), AS_BYTES), other);
	else
		draft_sentence(d, "chunks read %s, %s of it in files without baskets", all, other);
}

/* What coffea does not count: its bytesread covers the columns that events loaded, and metadata. */
enum verdict finding_not_by_coffea(const struct report *r, struct draft *d)
{
	const struct tally *t = &r->facts->chunks;
	double came, requested, waits, loading, n;
	struct value v = tally_came(t);
	const char *opened;
	bool known, counted;

	if (!t->attempts || r->facts->lazy)
		return CHECK_IDLE;
	came = value_number(v, &known);
	if (!known)
		return draft_unknown(d, "read_bytes");
	requested = value_number(tally_requested(t), &counted);
	if (!counted) /* without savemetrics=True */
		requested = fmax(came - without_baskets(r), 0);
	if (!(came * 100 >= requested * d->check->first) || came - requested < d->check->second)
		return counted ? CHECK_QUIET : draft_unknown(d, "coffea_bytesread");
	draft_evidence(d, "chunk_read_bytes", value_real(came), "bytes");
	if (counted)
		draft_evidence(d, "requested_bytes", value_real(requested), "bytes");
	draft_evidence(d, "other_bytes", value_real(came - requested), "bytes");
	say_bypassed(d, came, requested, counted);
	say_most_read(r, d);
	opened = draft_opened_by(d, r, CREMA_OPENED_N_read_bytes, came - requested, &n);
	if (opened)
		draft_sentence_more(d, "; %s came from files opened at %s",
				    draft_human(d, value_real(n), AS_BYTES), opened);
	say_written(t, d, came - requested);
	say_collected(r, d);
	waits = cost_part(came - requested, came, d->costs->reading);
	loading = cost_of_cpu(d->costs, loading_cpu(&r->lines));
	draft_cost_least(d, waits + (isnan(loading) ? 0 : loading));
	return draft_found(d, (came - requested) / came);
}

static size_t lines_of(const char *text)
{
	size_t n = text && *text;

	for (; text && *text; text++)
		n += *text == '\n';
	return n;
}

/* The largest number of columns that a chunk has read; texts are shared, so most are checked
 * once. */
static size_t most_columns(const struct run *run, bool *known)
{
	const struct attempt *a;
	const char *last = NULL;
	size_t i, n, most = 0;

	*known = false;
	for (i = 0; i < run->attempts.n; i++) {
		a = run->attempts.v[i];
		if (!a->counted || !attempt_is_chunk(a) || !a->columns)
			continue;
		*known = true;
		if (a->columns == last)
			continue;
		last = a->columns;
		n = lines_of(last);
		most = n > most ? n : most;
	}
	return most;
}

/* Names the line that read most of them. */
static void say_reader(const struct report *r, double used, struct draft *d)
{
	const struct read_line *line;
	const char *name = draft_reader(r, d, CREMA_COLUMN_N_basket_bytes, used / 5, &line);

	if (!name)
		return;
	draft_evidence(d, "read_line_basket_bytes", line->basket_bytes, "bytes");
	draft_sentence_more(d, "; %s asked for %zu of them (%s)", name, line->columns.n,
			    draft_human(d, line->basket_bytes, AS_BYTES));
}

enum verdict finding_wide_read(const struct report *r, struct draft *d)
{
	double used = 0, size = 0;
	struct layer_values v;
	const struct file_sum *f;
	size_t i, columns;
	bool known;

	if (!r->facts->chunks.attempts)
		return CHECK_IDLE;
	columns = most_columns(r->run, &known);
	if (!known)
		return draft_unknown(d, "columns");
	for (i = 0; i < r->files.n; i++) {
		f = &r->files.v[i];
		if (!f->chunks || !(value_number(f->basket_calls, NULL) > 0))
			continue;
		layers_values(f, &v);
		used += value_number(v.unique_basket_bytes, &known);
		if (!known)
			return draft_unknown(d, "unique_basket_bytes");
		size += value_number(f->size_bytes, &known);
		if (!known)
			return draft_unknown(d, "size_bytes");
	}
	if ((double)columns < d->check->first || !(size > 0) ||
	    used * 100 < size * d->check->second)
		return CHECK_QUIET;
	draft_evidence(d, "columns", value_uint(columns), "columns");
	draft_evidence(d, "unique_basket_bytes", value_real(used), "bytes");
	draft_evidence(d, "size_bytes", value_real(size), "bytes");
	draft_evidence(d, "percent", value_real(used / size * 100), "%");
	draft_sentence(d,
		       "chunks read %zu columns, %s of the files' bytes (%s of %s); crema does not "
		       "know which of them the analysis used",
		       columns, draft_percent(d, used / size * 100),
		       draft_human(d, value_real(used), AS_BYTES),
		       draft_human(d, value_real(size), AS_BYTES));
	say_reader(r, used, d);
	draft_cost_least(d, cost_of_baskets(r, d->costs));
	return draft_found(d, used / size);
}

/* coffea compresses the processor with lz4 frames. If other codecs made the larger part, process()
 * decompresses other data. The codecs' rows can arrive after the tasks. */
static void advise_unpacked(const struct report *r, struct draft *d, double beside, double baskets)
{
	double others = -baskets;
	size_t i;

	for (i = 0; i < r->codecs.n; i++) {
		if (!r->codecs.v[i].library || strncmp(r->codecs.v[i].library, "lz4.frame", 9))
			others += value_number(r->codecs.v[i].decompress.out_bytes, NULL);
	}
	if (others > beside / 2)
		draft_advise(d, "process() decompresses files or data: load them once per worker "
				"(a function with @functools.cache), not in each chunk.");
}

/* Data compressed with coffea's own task: the processor, and what process() decompresses. */
enum verdict finding_chunk_baggage(const struct report *r, struct draft *d)
{
	const struct tally *t = &r->facts->chunks;
	double out, beside, n = (double)t->attempts;
	bool known, raw_known;

	if (!t->attempts)
		return CHECK_IDLE;
	out = value_number(sum_value(&t->count[CREMA_C_decompress_out_bytes]), &known);
	beside = out - value_number(sum_value(&t->count[CREMA_C_basket_raw_bytes]), &raw_known);
	if (!known || !raw_known)
		return draft_unknown(d, "decompress_out_bytes");
	if (!reaches(beside, out, d->check->first, d->check->second * n))
		return CHECK_QUIET;
	draft_evidence(d, "decompress_out_bytes", value_real(out), "bytes");
	draft_evidence(d, "beside_baskets_bytes", value_real(beside), "bytes");
	draft_evidence(d, "beside_baskets_bytes_per_chunk", value_real(beside / n), "bytes");
	draft_evidence(d, "chunks", value_real(n), "chunks");
	draft_sentence(d,
		       "chunks decompressed %s outside baskets, %s of the total: %s for each of %s "
		       "chunks",
		       draft_human(d, value_real(beside), AS_BYTES),
		       draft_percent(d, beside / out * 100),
		       draft_human(d, value_real(beside / n), AS_BYTES),
		       draft_human(d, value_real(n), AS_COUNT));
	advise_unpacked(r, d, beside, out - beside);
	draft_cost_least(d, cost_part(beside, out, d->costs->decompress));
	return draft_found(d, beside / out);
}

#define SYNCS_PER_WRITE 0.01 /* a sync costs about as much as 100 writes */

enum verdict finding_small_writes(const struct report *r, struct draft *d)
{
	const struct tally *t = &r->facts->tasks;
	double calls, bytes, cpu, syncs;
	bool known, bytes_known, cpu_known, synced;

	calls = value_number(sum_value(&t->count[CREMA_C_write_calls]), &known);
	syncs = value_number(sum_value(&t->count[CREMA_C_sync_calls]), NULL);
	bytes = value_number(sum_value(&t->count[CREMA_C_write_bytes]), &bytes_known);
	cpu = value_number(tally_cpu(t), &cpu_known);
	if (!known || !bytes_known || !cpu_known)
		return draft_unknown(d, known && bytes_known ? "task_cpu_seconds" : "write_calls");
	if (!(calls > 0))
		return CHECK_IDLE;
	synced = syncs >= d->check->first * SYNCS_PER_WRITE * fmax(cpu, 1);
	if ((calls < d->check->first * fmax(cpu, 1) && !synced) || bytes / calls > d->check->second)
		return CHECK_QUIET;
	draft_evidence(d, "write_calls", value_real(calls), "calls");
	draft_evidence(d, "write_bytes", value_real(bytes), "bytes");
	draft_evidence(d, "mean_bytes", value_real(bytes / calls), "bytes");
	draft_evidence(d, "task_cpu_seconds", value_real(cpu), "s");
	draft_sentence(d, "tasks wrote to files %s times, %s on average, in %s of CPU",
		       draft_human(d, value_real(calls), AS_COUNT),
		       draft_human(d, value_real(bytes / calls), AS_BYTES),
		       draft_human(d, value_real(cpu), AS_SECONDS));
	if (synced) {
		draft_evidence(d, "sync_calls", value_real(syncs), "calls");
		draft_sentence_more(d, ", and %s times until it was on the disk (fsync)",
				    draft_human(d, value_real(syncs), AS_COUNT));
		draft_advise(d, "Each os.fsync() waits for the disk, and then for a core: write "
				"many lines at once, and sync once per chunk or not at all.");
	}
	return draft_found(d, 0);
}
