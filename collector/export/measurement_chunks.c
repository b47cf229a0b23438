/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measurement_chunks.c - counted chunks as roastcoffea's @track_metrics would have listed them.
 *
 * duration is coffea's processtime, which is wall time around process() as there; without
 * savemetrics it is the task's wall time, and duration_of says so. t_start and t_end are the task's
 * edges. bytes_read is what coffea says was requested, or what read calls returned. Accessed bytes
 * are of the baskets that this chunk used, where roastcoffea has whole branches of the file.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collector/export/measurement_parts.h"

#define MIB (1024.0 * 1024.0)

struct branch {
	const char *name;
	size_t n;
};
struct branches {
	struct branch *v;
	size_t n, cap;
};

static bool is_counted_chunk(const struct attempt *a)
{
	return a->counted && attempt_is_chunk(a);
}

static struct value duration_of(const struct attempt *a, const char **what)
{
	struct value said = attempt_f64(a, TASK_F_coffea_processtime);

	*what = said.type != VALUE_NULL ? "process()" : "task";
	return said.type != VALUE_NULL ? said : value_seconds(attempt_wall_ns(a));
}

static struct value bytes_of(const struct attempt *a, const char **what)
{
	struct value said = attempt_u64(a, TASK_F_coffea_bytesread);

	*what = said.type != VALUE_NULL ? "requested" : "returned by read calls";
	return said.type != VALUE_NULL ? said : count_of(&a->c, CREMA_C_read_bytes);
}

static struct value rss(const struct attempt *a, bool stop)
{
	return attempt_u64(a, stop ? TASK_F_rss_stop_bytes : TASK_F_rss_start_bytes);
}

static struct value rss_delta(const struct attempt *a)
{
	return value_minus(rss(a, true), rss(a, false));
}

static struct value mebibytes(struct value bytes)
{
	return value_ratio(bytes, value_real(MIB), 1);
}

static int by_name(const void *pa, const void *pb)
{
	const struct branch *a = pa, *b = pb;
	int c = memcmp(a->name, b->name, a->n < b->n ? a->n : b->n);

	return c ? c : a->n < b->n ? -1 : a->n > b->n;
}

/* The branch in a line of coffea's columns: awkward's parts of it are told apart there. */
static size_t branch_length(const char *line, size_t n)
{
	static const char *const parts[] = {"-data", "-offsets"};
	size_t i, k;

	for (i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		k = strlen(parts[i]);
		if (n > k && !memcmp(line + n - k, parts[i], k))
			return n - k;
	}
	return n;
}

static void put_branches(const struct attempt *a, struct json *j)
{
	struct branches all = {0};
	const char *line;
	struct branch *b;
	size_t i, n, count = 0;

	for (line = a->columns; *line; line += n + (line[n] == '\n')) {
		n = strcspn(line, "\n");
		b = n ? ARRAY_NEW(&all) : NULL;
		if (b)
			*b = (struct branch){line, branch_length(line, n)};
		else if (n)
			j->sink->error = -ENOMEM;
	}
	if (all.n)
		qsort(all.v, all.n, sizeof(*all.v), by_name);
	emit_array(j, "accessed_branches");
	for (i = 0; i < all.n; i++) {
		if (i && !by_name(&all.v[i - 1], &all.v[i]))
			continue;
		emit_text(j, NULL, all.v[i].name, all.v[i].n);
		count++;
	}
	emit_end(j);
	emit_value(j, "num_branches_accessed", value_uint(count));
	free(all.v);
}

static void put_chunk(const struct attempt *a, struct json *j)
{
	const char *duration_what, *bytes_what;
	struct value duration = duration_of(a, &duration_what), bytes = bytes_of(a, &bytes_what);

	emit_object(j, NULL);
	measurement_put(j, "t_start", value_real(a->begin));
	measurement_put(j, "t_end", value_real(a->end));
	measurement_put(j, "duration", duration);
	emit_value(j, "duration_of", value_text(duration_what));
	measurement_put(j, "wall_seconds", value_seconds(attempt_wall_ns(a)));
	measurement_put(j, "mem_before_mb", mebibytes(rss(a, false)));
	measurement_put(j, "mem_after_mb", mebibytes(rss(a, true)));
	measurement_put(j, "mem_delta_mb", mebibytes(rss_delta(a)));
	measurement_put(j, "bytes_read", bytes);
	emit_value(j, "bytes_read_of", value_text(bytes_what));
	measurement_put(j, "timestamp", value_real(a->end));
	measurement_put(j, "num_events", attempt_events(a));
	measurement_put(j, "dataset", value_text(a->dataset));
	measurement_put(j, "file", value_text(a->filename));
	measurement_put(j, "entry_start", attempt_i64(a, TASK_F_entrystart));
	measurement_put(j, "entry_stop", attempt_i64(a, TASK_F_entrystop));
	measurement_put(j, "accessed_bytes", count_of(&a->c, CREMA_C_basket_bytes));
	measurement_put(j, "accessed_uncompressed_bytes",
			count_of(&a->c, CREMA_C_basket_raw_bytes));
	if (a->columns)
		put_branches(a, j);
	emit_end(j);
}

/* {"(file, start, stop)": [begin, end, bytes]} */
static void put_chunk_info(const struct attempt *a, struct buf *key, struct json *j)
{
	struct value start = attempt_i64(a, TASK_F_entrystart),
		     stop = attempt_i64(a, TASK_F_entrystop);
	const int64_t range[] = {start.v.i, stop.v.i};
	const char *what;

	if (!a->filename || start.type == VALUE_NULL || stop.type == VALUE_NULL ||
	    isnan(a->begin) || isnan(a->end) || bytes_of(a, &what).type == VALUE_NULL)
		return;
	measurement_tuple(key, &a->filename, 1, range, 2);
	if (key->error) {
		j->sink->error = key->error;
		return;
	}
	emit_array(j, (const char *)key->data);
	emit_value(j, NULL, value_real(a->begin));
	emit_value(j, NULL, value_real(a->end));
	emit_value(j, NULL, bytes_of(a, &what));
	emit_end(j);
}

static int by_dataset(const void *pa, const void *pb)
{
	const struct attempt *const *a = pa, *const *b = pb;
	const char *x = (*a)->dataset, *y = (*b)->dataset;

	if (x == y)
		return 0;
	return !x ? -1 : !y ? 1 : strcmp(x, y);
}

static void put_dataset(const struct attempt *const *v, size_t n, struct json *j)
{
	double seconds = 0, one;
	bool known = true, all = true;
	struct tally t;
	const char *what;
	size_t i;

	memset(&t, 0, sizeof(t));
	for (i = 0; i < n; i++) {
		tally_add(&t, v[i]);
		one = value_number(duration_of(v[i], &what), &known);
		seconds += one;
		all &= known;
	}
	emit_object(j, v[0]->dataset ? v[0]->dataset : "unknown");
	emit_value(j, "num_chunks", value_uint(n));
	measurement_put(j, "total_duration", all ? value_real(seconds) : value_null());
	measurement_put(j, "mean_duration", all ? value_real(seconds / (double)n) : value_null());
	measurement_put(j, "total_events", sum_value(&t.events));
	measurement_put(j, "mean_events_per_chunk",
			value_ratio(sum_value(&t.events), value_uint(n), 1));
	measurement_put(j, "coffea_bytesread", sum_value(&t.bytesread));
	measurement_put(j, "read_bytes", sum_value(&t.count[CREMA_C_read_bytes]));
	measurement_put(j, "storage_read_bytes", sum_value(&t.storage_read));
	measurement_put(j, "cpu_seconds", tally_cpu(&t));
	emit_end(j);
}

static void put_datasets(const struct attempt **v, size_t n, struct json *j)
{
	size_t i, from = 0;

	qsort(v, n, sizeof(*v), by_dataset);
	emit_object(j, "per_dataset");
	for (i = 1; i <= n; i++) {
		if (i < n && !by_dataset(&v[i - 1], &v[i]))
			continue;
		put_dataset(&v[from], i - from, j);
		from = i;
	}
	emit_end(j);
}

void measurement_chunks(const struct report *r, struct json *j)
{
	const struct attempt **v = calloc(r->run->attempts.n + 1, sizeof(*v));
	struct buf key = BUF_INIT;
	size_t i, n = 0;

	if (!v) {
		j->sink->error = -ENOMEM;
		return;
	}
	for (i = 0; i < r->run->attempts.n; i++) {
		if (is_counted_chunk(r->run->attempts.v[i]))
			v[n++] = r->run->attempts.v[i];
	}
	emit_array(j, "raw_chunk_metrics");
	for (i = 0; i < n; i++)
		put_chunk(v[i], j);
	emit_end(j);
	emit_object(j, "chunk_info");
	for (i = 0; i < n; i++)
		put_chunk_info(v[i], &key, j);
	emit_end(j);
	put_datasets(v, n, j);
	buf_release(&key);
	free(v);
}
