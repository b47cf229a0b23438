/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_chunksize.c - what larger chunks would save.
 *
 * Each chunk opens its file anew and reads metadata, and gaps between baskets. What a chunk read
 * beside its baskets is taken as the price of one more chunk of that file; coffea makes
 * round(entries / chunksize) chunks of a file, at least one.
 */
#include <math.h>
#include <stdlib.h>

#include "collector/findings/check.h"

#define MOST_OF 0.8 /* of what one chunk for each file would save */

struct file_chunks {
	const char *file;
	double chunks, events, read, outside, baskets;
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

static struct file_chunks *file_of(struct files *files, struct remark *d, const char *name)
{
	uint64_t hash = hash_pair((uintptr_t)name, 1);
	struct file_chunks *f = table_find(&files->table, hash, same_file, name), **at;

	if (f)
		return f;
	f = arena_get(d->arena, sizeof(*f));
	at = f ? ARRAY_NEW(files) : NULL;
	if (!at || table_add(&files->table, hash, f)) {
		files->n -= at != NULL;
		return NULL;
	}
	f->file = name;
	return *at = f;
}

/* Sums of the counted chunks: 0, -1 without memory; `*unknown` names what is. */
static int sums_of(const struct run *run, struct files *files, struct remark *d,
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

/* The smallest of 1, 2, 5, 10, 20 ... that saves most of what can be saved. */
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

static enum verdict judge(const struct files *files, struct remark *d)
{
	double chunks = 0, events = 0, read = 0, outside = 0, size, saved;
	size_t i;

	for (i = 0; i < files->n; i++) {
		chunks += files->v[i]->chunks;
		events += files->v[i]->events;
		read += files->v[i]->read;
		outside += files->v[i]->outside;
	}
	if (chunks <= (double)files->n) /* one for each file */
		return CHECK_QUIET;
	size = better_size(files);
	saved = saved_by(files, size);
	if (!reaches(saved, read, d->check->first, d->check->second))
		return CHECK_QUIET;
	remark_see(d, "events_per_chunk", value_real(events / chunks), "events");
	remark_see(d, "chunks", value_real(chunks), "chunks");
	remark_see(d, "chunk_read_bytes", value_real(read), "bytes");
	remark_see(d, "chunk_outside_bytes", value_real(outside), "bytes");
	remark_see(d, "chunk_outside_percent", value_real(outside / read * 100), "%");
	remark_see(d, "chunksize", value_real(size), "events");
	remark_see(d, "saved_bytes", value_real(saved), "bytes");
	remark_say(d,
		   "chunks of %s events read %s outside of their baskets (metadata, gaps; %s of "
		   "%s): a chunksize of %s would save %s",
		   remark_human(d, value_real(events / chunks), AS_COUNT),
		   remark_percent(d, outside / read * 100),
		   remark_human(d, value_real(outside), AS_BYTES),
		   remark_human(d, value_real(read), AS_BYTES),
		   remark_human(d, value_real(size), AS_COUNT),
		   remark_human(d, value_real(saved), AS_BYTES));
	remark_advise(d, "Use chunksize=%.0f; memory per task grows with it.", size);
	return remark_found(d, saved / read);
}

enum verdict finding_metadata_reread(const struct report *r, struct remark *d)
{
	enum verdict verdict = CHECK_IDLE;
	const char *unknown = NULL;
	struct files files = {0};

	if (sums_of(r->run, &files, d, &unknown))
		d->no_memory = true;
	else if (unknown)
		verdict = remark_unknown(d, unknown);
	else if (files.n)
		verdict = judge(&files, d);
	table_release(&files.table);
	free(files.v);
	return verdict;
}
