/* SPDX-License-Identifier: BSD-3-Clause */
/* health.c - the workers, and what the numbers lack. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "collector/report/report.h"
#include "common/log.h"

static void put_part(struct json *j, const char *name, const struct part *p, bool counters)
{
	emit_object(j, name);
	emit_value(j, "cpu_seconds", p->cpu_seconds);
	emit_value(j, "storage_read_bytes", p->storage_read_bytes);
	emit_value(j, "storage_write_bytes", p->storage_write_bytes);
	if (counters) {
#define PART(name, ...) emit_value(j, #name, p->name);
#include "counters.def"
	}
	emit_end(j);
}

void worker_texts_json(struct json *j, const char *name, const struct texts *t)
{
	size_t i;

	emit_array(j, name);
	for (i = 0; i < t->n; i++)
		emit_value(j, NULL, value_text(t->v[i]));
	emit_end(j);
}

void worker_filesystems_json(const struct worker *w, struct json *j, const char *name)
{
	const struct filesystem *f;
	size_t i;

	emit_array(j, name);
	for (i = 0; i < w->filesystems.n; i++) {
		f = &w->filesystems.v[i];
		emit_object(j, NULL);
		emit_value(j, "path", value_text(f->path));
		emit_value(j, "type", value_text(f->type));
		emit_value(j, "storage", value_text(f->storage));
		emit_value(j, "calibration", value_text(f->calibration));
		emit_end(j);
	}
	emit_end(j);
}

static void put_worker_facts(const struct worker *w, struct json *j)
{
#define CELL(name, type, value) emit_value(j, #name, value);
#define LIST EMIT_LIST
#include "collector/report/cells_worker_facts.def"
#undef CELL
#undef LIST
}

static void put_worker_end(const struct worker *w, struct json *j)
{
	emit_value(j, "first_seen", value_real(w->first));
	emit_value(j, "last_seen", value_real(w->last));
	emit_value(j, "silent", value_bool(w->silent));
	if (!w->goodbye) {
		emit_value(j, "goodbye", value_null());
		return;
	}
	emit_object(j, "goodbye");
	emit_value(j, "time", value_real(worker_utc(w, w->goodbye_boot_ns)));
	emit_value(j, "how", value_text(w->goodbye_how));
	emit_value(j, "cause", value_text(w->goodbye_cause));
	emit_value(j, "tasks_in_flight", w->tasks_in_flight);
	worker_texts_json(j, "evidence", &w->evidence);
	emit_end(j);
}

static void put_host(const struct worker *w, struct json *j)
{
	const struct host_sample *h = w->hosts.n ? &w->hosts.v[w->hosts.n - 1] : NULL;

	if (!h) {
		emit_value(j, "host_sample", value_null());
		return;
	}
	emit_object(j, "host_sample");
	emit_value(j, "time", value_real(h->time));
	for (size_t i = 0; i < CREMA_HOST_NUMBERS; i++)
		emit_value(j, row_host[i], value_real(h->number[i]));
	emit_end(j);
}

void report_losses_json(const struct report *r, struct json *j)
{
	emit_at_least(j, "records_refused", r->totals.records_refused, r->silent);
	emit_at_least(j, "tasks_refused", r->totals.tasks_refused, r->silent);
	emit_at_least(j, "records_lost", r->records_lost, r->silent);
}

void report_workers_json(const struct report *r, struct json *j)
{
	const struct worker *w;
	struct balance b;
	size_t i, k;

	emit_array(j, "workers");
	for (i = 0; i < r->run->workers.n; i++) {
		w = r->run->workers.v[i];
		worker_balance(w, &b);
		emit_object(j, NULL);
		put_worker_facts(w, j);
		put_worker_end(w, j);
		put_host(w, j);
		for (k = 0; k < CREMA_TOTALS_NUMBERS; k++) {
			if (row_totals[k].of_worker)
				emit_value(j, row_totals[k].name, w->totals.number[k]);
		}
		emit_at_least(j, "records_lost", value_uint(w->records_lost), w->silent);
		put_part(j, "tasks", &b.tasks, true);
		put_part(j, "unattributed", &b.unattributed, true);
		put_part(j, "unseen", &b.unseen, false);
		put_part(j, "rusage", &b.process, false);
		put_part(j, "children", &b.children, false);
		worker_texts_json(j, "notes", &w->notes);
		emit_end(j);
	}
	emit_end(j);
}

static void put_torn(const struct model *m, struct json *j)
{
	const struct torn_file *t;
	size_t i;

	emit_array(j, "torn_files");
	for (i = 0; i < m->torn.n; i++) {
		t = &m->torn.v[i];
		emit_object(j, NULL);
		emit_value(j, "file", value_text(t->name));
		emit_value(j, "bytes_skipped", value_uint(t->bytes_skipped));
		emit_value(j, "truncated", value_bool(t->truncated));
		emit_value(j, "no_header", value_bool(t->no_header));
		emit_value(j, "newer", value_bool(t->newer));
		emit_value(j, "unreadable", value_bool(t->error != 0));
		emit_end(j);
	}
	emit_end(j);
}

static void say_json(void *arg, const char *line)
{
	emit_value(arg, NULL, value_text(line));
}

void report_completeness_json(const struct report *r, struct json *j)
{
	const struct model *m = r->run->model;

	emit_object(j, "completeness");
	emit_value(j, "covers", value_text("the whole life of the run's workers so far"));
	emit_value(j, "workers_seen", value_uint(r->run->workers.n));
	emit_value(j, "workers_with_shim_notes", value_uint(r->workers_with_notes));
	report_losses_json(r, j);
	emit_value(j, "records_bad", value_uint(m->records_bad));
	emit_value(j, "known_until", r->silent ? value_real(r->silent_since) : value_null());
	put_part(j, "tasks", &r->balance.tasks, true);
	put_part(j, "unattributed", &r->balance.unattributed, true);
	put_part(j, "unseen", &r->balance.unseen, false);
	put_part(j, "rusage", &r->balance.process, false);
	blocking_completeness_json(r->blocking, j);
	for (size_t k = 0; k < CREMA_TOTALS_NUMBERS; k++) {
		if (!row_totals[k].of_worker)
			emit_value(j, row_totals[k].name, r->totals.number[k]);
	}
	put_part(j, "children", &r->balance.children, false);
	emit_value(j, "files_read", value_uint(m->files_read));
	put_torn(m, j);
	emit_array(j, "notes");
	report_notes(r, say_json, j);
	emit_end(j);
	emit_end(j);
}

/* One line, cut at 511 bytes. */
__attribute__((format(printf, 3, 4))) static void note(void (*say)(void *, const char *), void *arg,
						       const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	say(arg, line);
}

/* Notes of the shims of the run's workers: each text once, with the number of workers. */
static void note_workers_notes(const struct report *r, void (*say)(void *, const char *), void *arg)
{
	const struct worker *w, *o;
	size_t i, k, n, p, q, times;
	bool earlier;

	for (i = 0; i < r->run->workers.n; i++) {
		w = r->run->workers.v[i];
		for (n = 0; n < w->notes.n; n++) {
			for (k = 0, times = 0, earlier = false; k < r->run->workers.n; k++) {
				o = r->run->workers.v[k];
				for (p = 0, q = 0; p < o->notes.n; p++)
					q += o->notes.v[p] == w->notes.v[n];
				times += q;
				earlier = earlier || (q && k < i);
			}
			if (earlier)
				continue;
			note(say, arg, "%zu of %zu workers: %s", times, r->run->workers.n,
			     w->notes.v[n]);
		}
	}
}

static bool same_calibration(const struct filesystem *a, const struct filesystem *b)
{
	return a->type == b->type && a->storage == b->storage && a->calibration == b->calibration;
}

/* What the results of `crema doctor --calibrate` mean for storage bytes: each verdict once. */
static void note_calibrations(const struct report *r, void (*say)(void *, const char *), void *arg)
{
	const struct filesystem *seen[16], *f;
	size_t n = 0, i, k, at;

	for (i = 0; i < r->run->workers.n; i++) {
		for (k = 0; k < r->run->workers.v[i]->filesystems.n; k++) {
			f = &r->run->workers.v[i]->filesystems.v[k];
			for (at = 0; at < n && !same_calibration(seen[at], f); at++)
				;
			if (at < n || n == 16 || !f->calibration || !f->storage ||
			    !strcmp(f->storage, "exact"))
				continue;
			seen[n++] = f;
			note(say, arg, "%s: storage bytes are %s: %s",
			     f->type ? f->type : "unknown", f->storage, f->calibration);
		}
	}
}

const char *report_silent_since(const struct report *r, char text[16])
{
	time_t t = (time_t)r->silent_since;
	struct tm tm;

	if (!gmtime_r(&t, &tm) || !strftime(text, 16, "%H:%M:%S", &tm))
		snprintf(text, 16, "unknown");
	return text;
}

static size_t attempts_with(const struct run *run, uint64_t flag)
{
	size_t i, n = 0;

	for (i = 0; i < run->attempts.n; i++)
		n += (run->attempts.v[i]->flags & flag) != 0;
	return n;
}

static void note_states(const struct report *r, void (*say)(void *, const char *), void *arg)
{
	const struct run *run = r->run;
	size_t async = attempts_with(run, CREMA_TASK_ASYNC);
	size_t elsewhere = attempts_with(run, CREMA_TASK_ELSEWHERE);
	size_t i, lost = 0;
	double set = 0;
	char since[16];

	for (i = 0; i < run->attempts.n; i++)
		lost += run->attempts.v[i]->state == ATTEMPT_LOST;
	for (i = 0; i < run->workers.n; i++) {
		if (fabs(run->workers.v[i]->clock_set_seconds) > fabs(set))
			set = run->workers.v[i]->clock_set_seconds;
	}
	if (set != 0)
		note(say, arg,
		     "the collector's clock was set by %+.1f s while these workers ran: all "
		     "times are on the new clock, except those of workers that had ended before",
		     set);
	if (run->running)
		note(say, arg, "%zu attempts are still running and not counted yet", run->running);
	if (lost)
		note(say, arg,
		     "%zu attempts are lost with their worker: what is known is their last "
		     "progress",
		     lost);
	if (r->silent)
		note(say, arg,
		     "%zu worker%s went silent without a goodbye: what they lost, refused or "
		     "did after %s UTC is unknown",
		     r->silent, r->silent == 1 ? "" : "s", report_silent_since(r, since));
	if (elsewhere)
		note(say, arg,
		     "%zu attempts ran in processes of an executor: only their wall time is "
		     "known",
		     elsewhere);
	if (async)
		note(say, arg, "%zu asynchronous attempts: only their wall time is known", async);
}

static double worker_numbers(const struct report *r, size_t number)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < r->run->workers.n; i++)
		sum += value_number(r->run->workers.v[i]->totals.number[number], NULL);
	return sum;
}

static void note_texts(const struct report *r, void (*say)(void *, const char *), void *arg)
{
	double texts = worker_numbers(r, CREMA_TOTALS_N_strings_refused);
	double files = worker_numbers(r, CREMA_TOTALS_N_files_refused);
	size_t tasks = attempts_with(r->run, CREMA_TASK_TEXT_REFUSED);

	if (texts > 0)
		note(say, arg,
		     "a worker's table of texts was full %.0f times: a name of a file, a "
		     "column or an error is then unknown, and files without a name are in "
		     "files_rest",
		     texts);
	if (tasks)
		note(say, arg,
		     "%zu attempts have no span or no prefix, because their worker's table of "
		     "texts was full: those without a span are grouped by time",
		     tasks);
	if (files > 0)
		note(say, arg,
		     "a worker's table of files was full %.0f times: what was read there is in "
		     "files_rest%s",
		     files, r->rest_unknown ? ", or unknown" : "");
}

/* What found no room in tables of fixed size. */
static void note_tables(const struct report *r, void (*say)(void *, const char *), void *arg)
{
	double threads = worker_numbers(r, CREMA_TOTALS_N_threads_refused);
	size_t tasks = attempts_with(r->run, CREMA_TASK_THREAD_REFUSED);

	if (threads > 0)
		note(say, arg,
		     "%.0f threads found no room in their worker's table of %u: what they did "
		     "is unknown",
		     threads, CREMA_SHM_THREADS);
	if (tasks)
		note(say, arg,
		     "%zu attempts had work done in such threads: only their wall time is "
		     "known",
		     tasks);
}

/* For a span with more digests than fit, or a run that the worker's samples no longer contain. */
static bool digests_missing(const struct run *run, const struct worker *w)
{
	const struct attempt *a;
	size_t i;

	for (i = 0; w->digests_cut && i < run->attempts.n; i++) {
		a = run->attempts.v[i];
		if (a->worker == w && a->counted && !attempt_has_digests(run, a))
			return true;
	}
	return false;
}

static void note_dask(const struct report *r, void (*say)(void *, const char *), void *arg)
{
	size_t i, without = 0, cut = 0;

	for (i = 0; i < r->run->workers.n; i++) {
		without += !r->run->workers.v[i]->digests_boot_ns;
		cut += digests_missing(r->run, r->run->workers.v[i]);
	}
	if (r->run->plain)
		return;
	if (!r->run->first_span && attempts_with(r->run, CREMA_TASK_TEXT_REFUSED))
		say(arg, "Dask's fine metrics are unknown: the tasks' spans are");
	else if (!r->run->first_span)
		say(arg, "the tasks have no spans (older Dask): grouped by time, and Dask's fine "
			 "metrics "
			 "are unknown");
	else if (without || cut)
		note(say, arg, "Dask's fine metrics: %zu workers sent none, %zu only a part",
		     without, cut);
}

static void note_shared(const struct report *r, void (*say)(void *, const char *), void *arg)
{
	char in[HUMAN_BYTES], out[HUMAN_BYTES];
	double bytes = value_number(r->totals.shared_network_read_bytes, NULL) +
		       value_number(r->totals.shared_network_write_bytes, NULL);

	if (!(bytes > 0))
		return;
	note(say, arg,
	     "connections that serve several tasks at once: %s received and %s sent on them are "
	     "unattributed",
	     human(r->totals.shared_network_read_bytes, AS_BYTES, in),
	     human(r->totals.shared_network_write_bytes, AS_BYTES, out));
}

void report_notes(const struct report *r, void (*say)(void *arg, const char *line), void *arg)
{
	const struct model *m = r->run->model;
	const struct torn_file *t;
	size_t i;

	note_states(r, say, arg);
	note_tables(r, say, arg);
	note_texts(r, say, arg);
	note_dask(r, say, arg);
	for (i = 0; i < m->torn.n; i++) {
		t = &m->torn.v[i];
		if (t->journal) {
			note(say, arg,
			     "%s: cannot be read (%s), and what it has is not in this report",
			     t->name, log_error(t->error));
			continue;
		}
		note(say, arg, "%s: %s, %" PRIu64 " bytes skipped", t->name,
		     t->error	    ? "cannot be read"
		     : t->newer	    ? "was written by a newer crema"
		     : t->no_header ? "is not a frame file, or lacks its head"
		     : t->truncated ? "ends inside a frame"
				    : "is damaged",
		     t->bytes_skipped);
	}
	if (m->records_bad)
		note(say, arg, "%" PRIu64 " records could not be understood", m->records_bad);
	note_shared(r, say, arg);
	note_calibrations(r, say, arg);
	note_workers_notes(r, say, arg);
}
