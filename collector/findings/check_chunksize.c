/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_chunksize.c - what larger chunks would save.
 *
 * Each chunk opens its file again and reads metadata, and gaps between baskets. The bytes that a
 * chunk reads outside of its baskets are taken as the price of one more chunk of that file. coffea
 * makes round(entries / chunksize) chunks of a file, at least one. Time is treated the same way: a
 * chunk's time outside of process() is the price of one more chunk, and process() takes the same
 * for each event. Imports do not count, because a fresh worker makes them once: a chunk that
 * imports counts as much time outside of process() as the others do on average.
 */
#include <math.h>
#include <stdlib.h>

#include "collector/findings/check.h"

#define MOST_OF 0.8 /* of what one chunk per file would save */

struct file_chunks {
	const char *file;
	double chunks, events, read, outside, baskets;
	double wall, process; /* seconds of the tasks, and of process() in them */
	double importing;     /* chunks that import */
	double import_wall; /* of these, outside of process(); not in `wall` until it is adjusted */
};
struct files {
	struct file_chunks **v;
	size_t n, cap;
	struct table table;
};

static bool same_file(const void *item, const void *key)
{
	return ((const struct file_chunks *)item)->file == key;
}

static struct file_chunks *file_of(struct files *files, struct draft *d, const char *name)
{
	uint64_t hash = hash_pair((uintptr_t)name, 1);
	struct file_chunks *f = table_find(&files->table, hash, same_file, name);

	if (f)
		return f;
	f = TABLE_NEW(&files->table, hash, d->arena, files);
	if (!f)
		return NULL;
	f->file = name;
	return f;
}

/* Sums of the counted chunks: 0, -1 without memory; `*unknown` names the unknown input. */
static int sums_of(const struct run *run, struct files *files, struct draft *d,
		   const char **unknown)
{
	struct value read, baskets, events, mapped;
	const struct attempt *a;
	struct file_chunks *f;
	size_t i;

	for (i = 0; i < run->attempts.n; i++) {
		a = run->attempts.v[i];
		if (!a->counted || !attempt_is_chunk(a) || !a->filename)
			continue;
		events = attempt_events(a);
		read = value_plus(count_of(&a->c, CREMA_C_read_bytes),
				  count_of(&a->c, CREMA_C_network_read_bytes));
		baskets = count_of(&a->c, CREMA_C_basket_bytes);
		mapped = count_of(&a->c, CREMA_C_mapped_bytes);
		if (read.type == VALUE_NULL || mapped.type != VALUE_UINT || mapped.v.u)
			*unknown = "read_bytes";
		else if (baskets.type == VALUE_NULL)
			*unknown = "basket_bytes";
		else if (events.type == VALUE_NULL)
			*unknown = "total_events";
		if (*unknown)
			return 0;
		f = file_of(files, d, a->filename);
		if (!f)
			return -1;
		f->chunks++;
		f->events += value_number(events, NULL);
		f->read += value_number(read, NULL);
		f->outside += value_number(read, NULL) - value_number(baskets, NULL);
		f->baskets += value_number(baskets, NULL) +
			      value_number(count_of(&a->c, CREMA_C_embedded_baskets), NULL);
	}
	/* None in a whole file: it has another format. */
	for (i = 0; i < files->n && !*unknown; i++)
		if (!(files->v[i]->baskets > 0))
			*unknown = "basket_bytes";
	return 0;
}

static double saved_by(const struct files *files, double chunksize)
{
	const struct file_chunks *f;
	double saved = 0, n;
	size_t i;

	for (i = 0; i < files->n; i++) {
		f = files->v[i];
		n = fmax(rint(f->events / chunksize), 1);
		if (n < f->chunks && f->outside > 0)
			saved += (f->chunks - n) * f->outside / f->chunks;
	}
	return saved;
}

/* The smallest of 1, 2, 5, 10, 20 ... that saves most of the possible amount. */
static double better_size(const struct files *files)
{
	static const double steps[] = {1, 2, 5};
	double most = saved_by(files, INFINITY), size = 1, ten;
	size_t i;

	for (ten = 1; ten < 1e15; ten *= 10) {
		for (i = 0; i < 3; i++) {
			size = ten * steps[i];
			if (saved_by(files, size) >= MOST_OF * most)
				return size;
		}
	}
	return size;
}

static enum verdict judge(const struct files *files, struct draft *d)
{
	double chunks = 0, events = 0, read = 0, outside = 0, size, saved;
	size_t i;

	for (i = 0; i < files->n; i++) {
		chunks += files->v[i]->chunks;
		events += files->v[i]->events;
		read += files->v[i]->read;
		outside += files->v[i]->outside;
	}
	if (chunks <= (double)files->n) /* one per file */
		return CHECK_QUIET;
	size = better_size(files);
	saved = saved_by(files, size);
	if (!reaches(saved, read, d->check->first, d->check->second))
		return CHECK_QUIET;
	draft_evidence(d, "events_per_chunk", value_real(events / chunks), "events");
	draft_evidence(d, "chunks", value_real(chunks), "chunks");
	draft_evidence(d, "chunk_read_bytes", value_real(read), "bytes");
	draft_evidence(d, "chunk_outside_bytes", value_real(outside), "bytes");
	draft_evidence(d, "chunk_outside_percent", value_real(outside / read * 100), "%");
	draft_evidence(d, "chunksize", value_real(size), "events");
	draft_evidence(d, "saved_bytes", value_real(saved), "bytes");
	draft_sentence(
		d,
		"chunks of %s events read %s outside of their baskets (metadata, gaps; %s of "
		"%s): a chunksize of %s would save %s",
		draft_human(d, value_real(events / chunks), AS_COUNT),
		draft_percent(d, outside / read * 100),
		draft_human(d, value_real(outside), AS_BYTES),
		draft_human(d, value_real(read), AS_BYTES),
		draft_human(d, value_real(size), AS_COUNT),
		draft_human(d, value_real(saved), AS_BYTES));
	draft_advise(d, "Use chunksize=%s; memory per task grows with it.", draft_integer(d, size));
	/* only the bytes: the time to open files and to build events belongs to chunk_overhead */
	draft_cost(d, cost_part(saved, read, d->costs->reading));
	return draft_found(d, saved / read);
}

enum verdict finding_metadata_reread(const struct report *r, struct draft *d)
{
	enum verdict verdict = CHECK_IDLE;
	const char *unknown = NULL;
	struct files files = {0};

	if (sums_of(r->run, &files, d, &unknown))
		d->no_memory = true;
	else if (unknown)
		verdict = draft_unknown(d, unknown);
	else if (files.n)
		verdict = judge(&files, d);
	table_release(&files.table);
	free(files.v);
	return verdict;
}

static void take_time(struct file_chunks *f, const struct attempt *a, double wall, double process)
{
	process = fmin(process, wall);
	f->process += process;
	if (attempt_imports(a)) {
		f->importing++;
		f->import_wall += wall - process;
		wall = process;
	}
	f->wall += wall;
}

/* Time of the counted chunks by file: 0, -1 without memory; `*unknown` names the unknown input. */
static int times_of(const struct run *run, struct files *files, struct draft *d,
		    const char **unknown)
{
	struct value wall, process, events;
	const struct attempt *a;
	struct file_chunks *f;
	size_t i;

	for (i = 0; i < run->attempts.n && !*unknown; i++) {
		a = run->attempts.v[i];
		if (!a->counted || !attempt_is_chunk(a) || !a->filename)
			continue;
		wall = attempt_wall_ns(a);
		process = attempt_f64(a, TASK_F_coffea_processtime);
		events = attempt_events(a);
		if (wall.type == VALUE_NULL || process.type == VALUE_NULL)
			*unknown = "coffea_processtime";
		else if (events.type == VALUE_NULL)
			*unknown = "total_events";
		f = *unknown ? NULL : file_of(files, d, a->filename);
		if (!f)
			return *unknown ? 0 : -1;
		f->chunks++;
		f->events += value_number(events, NULL);
		take_time(f, a, value_number(wall, NULL) / 1e9, value_number(process, NULL));
	}
	return 0;
}

/* Returns the seconds of imports that are in no chunk's time. */
static double leave_out_imports(struct files *files)
{
	double plain = 0, outside = 0, each, left_out = 0;
	size_t i;

	for (i = 0; i < files->n; i++) {
		plain += files->v[i]->chunks - files->v[i]->importing;
		outside += files->v[i]->wall - files->v[i]->process;
	}
	for (i = 0; i < files->n; i++) {
		struct file_chunks *f = files->v[i];

		each = plain > 0 ? outside / plain * f->importing : INFINITY;
		f->wall += fmin(each, f->import_wall);
		left_out += fmax(f->import_wall - each, 0);
	}
	return left_out;
}

struct plan { /* all chunks of the run, or of one with another chunksize */
	double chunks, events, most_events, wall, process;
};

static struct plan plan_now(const struct files *files)
{
	struct plan p = {0};
	size_t i;

	for (i = 0; i < files->n; i++) {
		p.chunks += files->v[i]->chunks;
		p.events += files->v[i]->events;
		p.most_events = fmax(p.most_events, files->v[i]->events);
		p.wall += files->v[i]->wall;
		p.process += files->v[i]->process;
	}
	return p;
}

/* Thread-seconds of the run with that chunksize, including idle threads in its last round. */
static double planned(const struct files *files, const struct plan *now, double chunksize,
		      double threads, double *chunks)
{
	double each = (now->wall - now->process) / now->chunks, rounds;
	size_t i;

	for (i = 0, *chunks = 0; i < files->n; i++)
		*chunks +=
			fmin(fmax(rint(files->v[i]->events / chunksize), 1), files->v[i]->chunks);
	rounds = ceil(*chunks / threads);
	return rounds * threads * (each + now->process / *chunks);
}

/* The smallest of 1, 2, 5, 10 ... that is within a tenth of the fastest. */
static double fastest_size(const struct files *files, const struct plan *now, double threads)
{
	static const double steps[] = {1, 2, 5};
	double fastest = INFINITY, size, ten, n;
	int pass;
	size_t i;

	for (pass = 0; pass < 2; pass++) {
		for (ten = 1; ten <= now->most_events * 10; ten *= 10) {
			for (i = 0; i < 3; i++) {
				size = ten * steps[i];
				if (size < now->events / now->chunks)
					continue;
				if (!pass)
					fastest = fmin(fastest,
						       planned(files, now, size, threads, &n));
				else if (planned(files, now, size, threads, &n) <= 1.1 * fastest)
					return size;
			}
		}
	}
	return 0;
}

/* The share of chunks' time without waiting for a core: on cores that others keep busy, each second
 * of work takes several. */
static double without_queue(const struct tally *t)
{
	return t->wall > 0 ? fmax(1 - t->cls[CREMA_T_runqueue] / t->wall, 0) : 1;
}

static enum verdict judge_overhead(const struct report *r, struct files *files, struct draft *d)
{
	double imports = leave_out_imports(files);
	struct plan now = plan_now(files);
	double threads, size, overhead = now.wall - now.process, then, chunks;
	bool known;

	threads = fmax(value_number(metric_total_cores(r->facts), &known), 1);
	if (!known)
		return draft_unknown(d, "total_cores");
	if (now.chunks <= (double)files->n || !(now.wall > 0)) /* one per file */
		return CHECK_QUIET;
	size = fastest_size(files, &now, threads);
	then = size > 0 ? planned(files, &now, size, threads, &chunks) : now.wall;
	if (!reaches(now.wall - then, now.wall, d->check->first, 0) ||
	    (now.wall - then) * without_queue(&r->facts->chunks) < d->check->second)
		return CHECK_QUIET;
	draft_evidence(d, "chunks", value_real(now.chunks), "chunks");
	draft_evidence(d, "events_per_chunk", value_real(now.events / now.chunks), "events");
	draft_evidence(d, "chunk_wall_seconds", value_real(now.wall), "s");
	draft_evidence(d, "processtime_seconds", value_real(now.process), "s");
	draft_evidence(d, "overhead_seconds", value_real(overhead), "s");
	draft_evidence(d, "overhead_percent", value_real(overhead / now.wall * 100), "%");
	draft_evidence(d, "overhead_seconds_per_chunk", value_real(overhead / now.chunks), "s");
	draft_evidence(d, "chunksize", value_real(size), "events");
	draft_evidence(d, "chunks_then", value_real(chunks), "chunks");
	draft_sentence(
		d,
		"%s of the chunks' time (%s of %s) went to opening the file and building the "
		"events, outside of process(): %s for each of %s chunks of %s events",
		draft_percent(d, overhead / now.wall * 100),
		draft_human(d, value_real(overhead), AS_SECONDS),
		draft_human(d, value_real(now.wall), AS_SECONDS),
		draft_human(d, value_real(overhead / now.chunks), AS_SECONDS),
		draft_human(d, value_real(now.chunks), AS_COUNT),
		draft_human(d, value_real(rint(now.events / now.chunks)), AS_COUNT));
	if (imports > 0) {
		draft_evidence(d, "imports_left_out_seconds", value_real(imports), "s");
		draft_sentence_more(d, ", without %s of imports",
				    draft_human(d, value_real(imports), AS_SECONDS));
	}
	draft_advise(d, "Use chunksize=%s, which makes %.0f chunks; memory per task grows with it.",
		     draft_integer(d, size), chunks);
	draft_cost(d, cost_part(overhead, d->costs->task_seconds, d->costs->any));
	then = cost_part(now.wall - then, d->costs->task_seconds, d->costs->any);
	draft_gain(d, then, "about %s", draft_human(d, value_real(then), AS_SECONDS));
	return draft_found(d, overhead / now.wall);
}

/* coffea compresses what a chunk returns after process(). With large outputs this takes the time,
 * and chunks of another size return as much. */
#define LARGE_OUTPUT 1e7

static bool returns_much(const struct report *r)
{
	const struct tally *t = &r->facts->chunks;

	return value_number(sum_value(&t->count[CREMA_C_compress_in_bytes]), NULL) >=
	       LARGE_OUTPUT * (double)t->attempts;
}

enum verdict finding_chunk_overhead(const struct report *r, struct draft *d)
{
	enum verdict verdict = CHECK_IDLE;
	const char *unknown = NULL;
	struct files files = {0};

	if (r->facts->lazy)
		return CHECK_IDLE;
	if (times_of(r->run, &files, d, &unknown))
		d->no_memory = true;
	else if (unknown)
		verdict = draft_unknown(d, unknown);
	else if (files.n)
		verdict = returns_much(r) ? CHECK_QUIET : judge_overhead(r, &files, d);
	table_release(&files.table);
	free(files.v);
	return verdict;
}
