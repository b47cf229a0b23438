/* SPDX-License-Identifier: BSD-3-Clause */
/* model_probe.c - the JSON texts of the worker probe: Dask's numbers and the versions of the
 * stack. */
#include "collector/model/digest_rows.h"
#include "collector/model/model.h"
#include "collector/model/selection.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double real_of(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

static const char *text_of(struct model *m, const json_t *v)
{
	if (!json_is_string(v))
		return NULL;
	return model_text(m, (struct text){json_string_value(v), json_string_length(v)});
}

static struct value uint_of(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (json_is_integer(v) && json_integer_value(v) >= 0)
		return value_uint((uint64_t)json_integer_value(v));
	if (json_is_real(v) && json_real_value(v) >= 0 && json_real_value(v) < 9e18)
		return value_uint((uint64_t)json_real_value(v));
	return value_null();
}

static bool has_span(const struct digest *v, size_t n, const char *span)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (v[i].span == span)
			return true;
	}
	return false;
}

/* Keeps the earlier rows of spans that the sample leaves out; rows of a span are adjacent. */
static void keep_others(struct worker *w, size_t before)
{
	const struct digest *d;
	const char *last = NULL;
	bool known = false;
	size_t i, n = before;

	for (i = 0; i < before; i++) {
		d = &w->digests.v[i];
		if (!i || d->span != last)
			known = has_span(w->digests.v + before, w->digests.n - before, d->span);
		last = d->span;
		w->digests.v[i].boot_ns = known ? 0 : d->boot_ns;
	}
	for (i = n = 0; i < w->digests.n; i++) {
		if (w->digests.v[i].boot_ns)
			w->digests.v[n++] = w->digests.v[i];
	}
	w->digests.n = n;
}

static const char *row_text(struct model *m, const struct digest_row *row, enum digest_text which)
{
	return row->text[which].ptr ? model_text(m, row->text[which]) : NULL;
}

static int take_digests(struct model *m, struct worker *w, uint64_t boot_ns,
			const struct digest_rows *rows)
{
	size_t i, before = w->digests_cut && w->digests_whole ? w->digests.n : 0;
	const struct digest_row *row;
	struct digest *d;

	w->digests.n = before;
	for (i = 0; i < rows->n; i++) {
		row = &rows->v[i];
		d = ARRAY_NEW(&w->digests);
		if (!d)
			return -ENOMEM;
		d->context = row_text(m, row, DIGEST_CONTEXT);
		d->span = row_text(m, row, DIGEST_SPAN);
		d->prefix = row_text(m, row, DIGEST_PREFIX);
		d->activity = row_text(m, row, DIGEST_ACTIVITY);
		d->unit = row_text(m, row, DIGEST_UNIT);
		d->value = row->value;
		d->boot_ns = boot_ns;
	}
	keep_others(w, before);
	return m->error;
}

/* Sums of the digests without a span, and the probe's own numbers; kept if they differ from the
 * probe before. */
static int take_outside(struct worker *w, uint64_t boot_ns, const json_t *o,
			const struct digest_rows *rows, bool cut)
{
	static const struct {
		const char *activity, *unit;
	} kinds[OUTSIDE_DIGESTS] = {
		[OUTSIDE_SERIALIZE] = {"serialize", "seconds"},
		[OUTSIDE_DESERIALIZE] = {"deserialize", "seconds"},
		[OUTSIDE_COMPRESS] = {"compress", "seconds"},
		[OUTSIDE_DECOMPRESS] = {"decompress", "seconds"},
		[OUTSIDE_DISK_READ_TIME] = {"disk-read", "seconds"},
		[OUTSIDE_DISK_WRITE_TIME] = {"disk-write", "seconds"},
		[OUTSIDE_DISK_READ] = {"disk-read", "bytes"},
		[OUTSIDE_DISK_WRITE] = {"disk-write", "bytes"},
	};
	struct outside now = {.boot_ns = boot_ns}, *at;
	const struct digest_row *row;
	size_t i, k;

	for (i = 0; i < rows->n; i++) {
		row = &rows->v[i];
		for (k = 0; k < OUTSIDE_DIGESTS && !row->text[DIGEST_SPAN].ptr; k++) {
			if (text_is(row->text[DIGEST_ACTIVITY], kinds[k].activity) &&
			    text_is(row->text[DIGEST_UNIT], kinds[k].unit))
				now.v[k] += row->value;
		}
	}
	for (k = 0; cut && k < OUTSIDE_DIGESTS; k++)
		now.v[k] = (double)NAN;
	now.v[OUTSIDE_GC] = real_of(o, "gc_seconds");
	now.v[OUTSIDE_STREAM] = real_of(o, "stream_bytes");
	at = w->outside.n ? &w->outside.v[w->outside.n - 1] : NULL;
	if (at && at->boot_ns <= boot_ns && !memcmp(at->v, now.v, sizeof(now.v)))
		return 0;
	at = ARRAY_NEW(&w->outside);
	if (!at)
		return -ENOMEM;
	*at = now;
	return 0;
}

static void take_told(struct worker *w, uint64_t boot_ns, const json_t *said)
{
	const json_t *row;
	size_t i;

	if (!json_is_object(said) || boot_ns < w->told.boot_ns)
		return;
	w->told = (struct scheduler_said){true, boot_ns, real_of(said, "clients"), 0};
	json_array_foreach(json_object_get(said, "prefixes"), i, row)
	{
		w->told.unfinished += json_number_value(json_array_get(row, 1));
	}
}

static void take_keys(struct taken *t, const json_t *list)
{
	const json_t *text;
	size_t i;

	t->keys = 0;
	json_array_foreach(list, i, text)
	{
		if (t->keys < MODEL_TAKEN_KEYS && json_is_string(text))
			t->key_hash[t->keys++] = strtoull(json_string_value(text), NULL, 16);
	}
}

/* [[span, whether the client left, tasks, seconds before this sample, [hashes of keys]], ...] */
static int take_back(struct model *m, struct worker *w, uint64_t boot_ns, const json_t *list)
{
	const json_t *row;
	struct taken *t;
	double age;
	size_t i;

	w->taken.n = 0;
	json_array_foreach(list, i, row)
	{
		age = json_number_value(json_array_get(row, 3));
		if (!json_is_integer(json_array_get(row, 2)) || !(age >= 0 && age < 1e9))
			continue;
		t = ARRAY_NEW(&w->taken);
		if (!t)
			return -ENOMEM;
		t->span = text_of(m, json_array_get(row, 0));
		t->client_left = json_is_true(json_array_get(row, 1));
		t->tasks = (uint64_t)json_integer_value(json_array_get(row, 2));
		t->boot_ns = boot_ns - (uint64_t)(age * 1e9);
		t->time = (double)NAN;
		take_keys(t, json_array_get(row, 4));
	}
	return 0;
}

static void take_numbers(struct model *m, struct probe *p, const json_t *o)
{
	p->nthreads = real_of(o, "nthreads");
	p->executing = real_of(o, "executing");
	p->ready = real_of(o, "ready");
	p->in_flight_data = real_of(o, "in_flight_data");
	p->long_running = real_of(o, "long_running");
	p->tasks = real_of(o, "tasks");
	p->executed = real_of(o, "executed");
	p->nbytes_managed = real_of(o, "nbytes_managed");
	p->spilled_bytes = real_of(o, "spilled_bytes");
	p->memory_bytes = real_of(o, "memory_bytes");
	p->memory_limit_bytes = real_of(o, "memory_limit_bytes");
	if (p->memory_limit_bytes <= 0) /* Dask's value for no limit */
		p->memory_limit_bytes = (double)NAN;
	p->cpu_percent = real_of(o, "cpu_percent");
	p->status = text_of(m, json_object_get(o, "status"));
}

/* `rows` NULL: the sample has no list of digests. */
static int take_sample(struct model *m, struct worker *w, uint64_t boot_ns, const json_t *o,
		       const struct digest_rows *rows)
{
	uint64_t cut = (uint64_t)json_integer_value(json_object_get(o, "digests_cut"));
	bool whole = json_is_true(json_object_get(o, "digests_whole"));
	struct probe *p;
	int rc = 0;

	worker_sign(w, boot_ns);
	p = ARRAY_NEW(&w->probes);
	if (!p)
		return -ENOMEM;
	p->boot_ns = boot_ns;
	take_numbers(m, p, o);
	take_told(w, boot_ns, json_object_get(o, "scheduler"));
	if (rows)
		rc = take_outside(w, boot_ns, o, rows, cut && !whole);
	if (!rc && rows && boot_ns >= w->digests_boot_ns) {
		w->digests_boot_ns = boot_ns;
		w->digests_cut = cut;
		w->digests_whole = whole;
		if (text_of(m, json_object_get(o, "closing")))
			w->closing = text_of(m, json_object_get(o, "closing"));
		rc = take_back(m, w, boot_ns, json_object_get(o, "taken_back"));
		rc = take_digests(m, w, boot_ns, rows);
	}
	if (!selection_takes_time(m, w, boot_ns))
		w->probes.n--;
	return rc;
}

int model_feed_dask(struct model *m, struct worker *w, uint64_t boot_ns, struct text json)
{
	struct digest_rows rows = {0};
	struct buf rest = BUF_INIT;
	bool listed = digest_rows_split(json, &rows, &rest);
	json_t *o =
		listed ? json_loadb((const char *)rest.data, rest.len, JSON_ALLOW_NUL, NULL) : NULL;
	int rc = 0;

	if (!json_is_object(o)) {
		json_decref(o);
		o = json_loadb(json.ptr, json.len, JSON_ALLOW_NUL, NULL);
		rows.n = 0;
		listed = json_is_array(json_object_get(o, "digests"));
		rc = digest_rows_of(json_object_get(o, "digests"), &rows);
	}
	if (!json_is_object(o))
		m->records_bad++;
	else if (!rc)
		rc = take_sample(m, w, boot_ns, o, listed ? &rows : NULL);
	json_decref(o);
	buf_release(&rest);
	free(rows.v);
	return rc;
}

/* Several Dask workers of one process may have different schedulers, at the same time or in
 * turn. */
static void take_scheduler(struct model *m, struct worker *w, const json_t *address)
{
	const char *text = text_of(m, address);

	if (!text)
		return;
	if ((w->scheduler && w->scheduler != text) || strstr(text, ", "))
		w->schedulers = true;
	w->scheduler = text;
}

static bool is_local(const char *address)
{
	return strstr(address, "//127.") || strstr(address, "//localhost") ||
	       strstr(address, "//[::1]");
}

static bool has_network(const struct worker *w)
{
	return w->boot_id && w->net_namespace.type == VALUE_UINT;
}

bool workers_share_network(const struct worker *a, const struct worker *b)
{
	return has_network(a) && has_network(b) && !strcmp(a->boot_id, b->boot_id) &&
	       a->net_namespace.v.u == b->net_namespace.v.u;
}

bool workers_share_scheduler(const struct worker *a, const struct worker *b)
{
	if (a == b || !a->scheduler || !b->scheduler || a->schedulers || b->schedulers)
		return true;
	if (a->scheduler != b->scheduler)
		return false;
	if (!strncmp(a->scheduler, "inproc:", 7))
		return a->host == b->host;
	if (!is_local(a->scheduler))
		return true;
	/* Containers of one machine have host names of their own, and one or several networks. */
	return has_network(a) && has_network(b) ? workers_share_network(a, b) : a->host == b->host;
}

void model_stack_facts(struct model *m, struct worker *w, struct text json)
{
	json_t *o = json_loadb(json.ptr, json.len, JSON_ALLOW_NUL, NULL);

	if (!json_is_object(o)) {
		json_decref(o);
		return;
	}
	if (text_of(m, json_object_get(o, "python")))
		w->python = text_of(m, json_object_get(o, "python"));
	w->distributed = text_of(m, json_object_get(o, "distributed"));
	w->dask = text_of(m, json_object_get(o, "dask"));
	w->coffea = text_of(m, json_object_get(o, "coffea"));
	w->uproot = text_of(m, json_object_get(o, "uproot"));
	w->cwd = text_of(m, json_object_get(o, "cwd"));
	w->address = text_of(m, json_object_get(o, "worker_address"));
	w->name = text_of(m, json_object_get(o, "worker_name"));
	take_scheduler(m, w, json_object_get(o, "scheduler"));
	w->nthreads = uint_of(o, "nthreads");
	w->memory_limit_bytes = uint_of(o, "memory_limit_bytes");
	if (w->memory_limit_bytes.type == VALUE_UINT && !w->memory_limit_bytes.v.u)
		w->memory_limit_bytes = value_null();
	json_decref(o);
}
