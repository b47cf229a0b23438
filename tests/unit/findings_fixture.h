/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * findings_fixture.h - synthetic runs, each at a threshold of one check.
 *
 * A case is a function that creates a run; its parameter selects the side of the thresholds. work()
 * creates tasks; its numbers are milliseconds and bytes.
 */
#ifndef FINDINGS_FIXTURE_H
#define FINDINGS_FIXTURE_H

#include <math.h>

#include "collector/findings/findings.h"
#include "collector/report/report.h"
#include "common/rows.h"
#include "report_fixture.h"

struct found {
	struct report report;
	struct findings list;
};

__attribute__((unused)) static void assert_real(double got, double want)
{
	if (!(fabs(got - want) < 1e-6))
		fail_msg("%.9g, not %.9g", got, want);
}

static void collect_of(struct fixture *fx, size_t run, struct found *found)
{
	fx_runs(fx);
	assert_true(run < fx->runs.n);
	assert_int_equal(report_gather(&found->report, &fx->runs.v[run], fx_facts(fx, run)), 0);
	found->report.wall = fx->wall;
	assert_int_equal(findings_collect(&found->report, &found->list), 0);
}

__attribute__((unused)) static void collect(struct fixture *fx, struct found *found)
{
	collect_of(fx, 0, found);
}

__attribute__((unused)) static void found_free(struct found *found)
{
	findings_release(&found->list);
	report_release(&found->report);
}

__attribute__((unused)) static const struct finding *finding_of(const struct found *found,
								const char *id)
{
	size_t i;

	for (i = 0; i < found->list.n; i++) {
		if (!strcmp(found->list.v[i].id, id))
			return &found->list.v[i];
	}
	return NULL;
}

/* The missing input of the check; NULL: it ran, or had nothing to check. */
__attribute__((unused)) static const char *gap_of(const struct found *found, const char *id)
{
	size_t i;

	for (i = 0; i < found->list.gap_count; i++) {
		if (!strcmp(found->list.gaps[i].id, id))
			return found->list.gaps[i].unknown;
	}
	return NULL;
}

__attribute__((unused)) static struct value evidence_of(const struct finding *f, const char *name)
{
	size_t i;

	for (i = 0; i < f->evidence_count; i++) {
		if (!strcmp(f->evidence[i].name, name))
			return f->evidence[i].value;
	}
	fail_msg("%s has no evidence '%s'", f->id, name);
	return value_null();
}

/* "name=value unit; ..." with a terminating NUL. */
__attribute__((unused)) static void put_evidence(struct buf *out, const struct finding *f)
{
	struct sink s = {.out = out};
	size_t i;

	for (i = 0; i < f->evidence_count; i++) {
		const struct evidence *e = &f->evidence[i];

		sink_printf(&s, "%s%s=", i ? "; " : "", e->name);
		if (e->value.type == VALUE_TEXT)
			sink_puts(&s, e->value.v.s);
		else
			sink_printf(&s, "%.10g", value_number(e->value, NULL));
		sink_printf(&s, "%s%s", *e->unit ? " " : "", e->unit);
	}
	sink_put(&s, "", 1);
	assert_int_equal(s.error, 0);
}

/* A task with all time classes known and 0, and the usual counters as well. */
__attribute__((unused)) static struct task_record work(uint64_t attempt, const char *key,
						       int start_ms, int stop_ms)
{
	struct task_record r = fx_record(attempt, key, "span", 0, start_ms, stop_ms);
	unsigned int i;

	r.own_known = r.pool_known = (1u << CREMA_TIMES) - 1;
	for (i = 0; i < CREMA_COUNTS; i++)
		r.count_known |= UINT64_C(1) << i;
	return r;
}

/* The same, as a chunk of a file. */
__attribute__((unused)) static struct task_record chunk(uint64_t attempt, const char *key,
							int start_ms, int stop_ms, const char *file,
							int64_t from, int64_t to)
{
	struct task_record r = work(attempt, key, start_ms, stop_ms);

	TASK_SET(&r, flags, CREMA_TASK_CHUNK);
	TASK_SET(&r, prefix, T("Processor"));
	TASK_SET(&r, dataset, T("data"));
	TASK_SET(&r, filename, T(file));
	TASK_SET(&r, treename, T("Events"));
	TASK_SET(&r, entrystart, from);
	TASK_SET(&r, entrystop, to);
	TASK_SET(&r, events, to - from);
	return r;
}

/* A message that is a map: pairs of "name:u", uint64_t or "name:s", const char *; then NULL. */
__attribute__((unused)) __attribute__((sentinel)) static void
fx_pairs(struct fixture *fx, int worker, uint64_t type, ...)
{
	struct buf b = BUF_INIT;
	const char *key, *colon;
	msgpack_packer pk;
	char name[64];
	size_t n = 0;
	va_list ap;

	va_start(ap, type);
	for (; (key = va_arg(ap, const char *)); n++) {
		if (key[strlen(key) - 1] == 's')
			(void)va_arg(ap, const char *);
		else
			(void)va_arg(ap, uint64_t);
	}
	va_end(ap);
	fx_begin(&pk, &b, type, n);
	va_start(ap, type);
	while ((key = va_arg(ap, const char *))) {
		colon = strchr(key, ':');
		assert_non_null(colon);
		snprintf(name, sizeof(name), "%.*s", (int)(colon - key), key);
		if (colon[1] == 's')
			pack_kv_text(&pk, name, va_arg(ap, const char *));
		else
			pack_kv_u64(&pk, name, va_arg(ap, uint64_t));
	}
	va_end(ap);
	fx_end(fx, worker, &b);
}

/* Samples of tasks of the span: `cpu` samples of 10 ms in which the stack computed (innermost
 * first; "user" frames are in analysis.py, others in a library's file). */
struct fx_place {
	const char *function, *file;
	uint64_t line;
	bool user;
};

/* Begins a LINES message of one row, whose last members the caller adds. */
static void fx_stack(struct fixture *fx, msgpack_packer *pk, struct buf *b, uint64_t number,
		     bool clocks, size_t depth, const struct fx_place *place)
{
	(void)fx;
	fx_begin(pk, b, CREMA_MSG_LINES, 7);
	pack_kv_u64(pk, "table", 1);
	pack_kv_text(pk, "state", "on");
	pack_kv_text(pk, "span", "span");
	pack_kv_u64(pk, "large_bytes", 1000000);
	pack_text(pk, "clocks");
	pack_bool(pk, clocks);
	pack_text(pk, "places");
	pack_array(pk, 4 * depth);
	for (size_t i = 0; i < depth; i++) {
		pack_text(pk, place[i].function);
		pack_text(pk, place[i].file);
		pack_u64(pk, place[i].line);
		pack_bool(pk, place[i].user);
	}
	pack_text(pk, "rows");
	pack_array(pk, 1);
	pack_map(pk, 5);
	pack_kv_u64(pk, "number", number);
	pack_text(pk, "pool");
	pack_bool(pk, false);
	pack_text(pk, "frames");
	pack_array(pk, depth);
	for (size_t i = 0; i < depth; i++)
		pack_u64(pk, i);
}

__attribute__((unused)) static void fx_samples(struct fixture *fx, int worker, uint64_t number,
					       bool clocks, uint64_t cpu, size_t depth,
					       const struct fx_place *place)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	fx_stack(fx, &pk, &b, number, clocks, depth, place);
	pack_text(&pk, "samples");
	pack_map(&pk, 1);
	pack_kv_u64(&pk, row_times[CREMA_T_cpu].id, cpu);
	pack_text(&pk, "ns");
	pack_map(&pk, 1);
	pack_kv_u64(&pk, row_times[CREMA_T_cpu].id, cpu * 10000000);
	fx_end(fx, worker, &b);
}

/* Large blocks of tasks of the span that were kept. */
__attribute__((unused)) static void fx_large(struct fixture *fx, int worker, uint64_t number,
					     uint64_t kept, size_t depth,
					     const struct fx_place *place)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	fx_stack(fx, &pk, &b, number, true, depth, place);
	pack_kv_text(&pk, "prefix", "task");
	pack_text(&pk, "large");
	pack_map(&pk, 2);
	pack_kv_u64(&pk, "changes", 1);
	pack_kv_u64(&pk, "kept_bytes", kept);
	fx_end(fx, worker, &b);
}

/* A worker's HELLO at that time, from a host with this number of cores. */
__attribute__((unused)) static void hello_at(struct fixture *fx, int worker, const char *host,
					     int threads, uint64_t cores, int ms)
{
	char stack[40];
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	snprintf(stack, sizeof(stack), "{\"nthreads\": %d}", threads);
	pack_init(&pk, &b);
	pack_map(&pk, 2);
	pack_text(&pk, "facts");
	pack_map(&pk, 6);
	pack_kv_text(&pk, "host", host);
	pack_kv_u64(&pk, "pid", (uint64_t)worker);
	pack_kv_u64(&pk, "cores", cores);
	pack_kv_u64(&pk, "boot_ns", AT(ms));
	pack_kv_u64(&pk, "real_ns", UTC_NS(ms));
	pack_kv_text(&pk, "stack", stack);
	pack_text(&pk, "task_fields");
	task_pack_names(&pk);
	fx_frame(fx, CREMA_FRAME_HELLO, worker, 0, &b);
	buf_release(&b);
}

__attribute__((unused)) static void hello_on(struct fixture *fx, int worker, const char *host,
					     int threads, uint64_t cores)
{
	hello_at(fx, worker, host, threads, cores, 0);
}

__attribute__((unused)) static void hello_of_host(struct fixture *fx, int threads, uint64_t cores)
{
	hello_on(fx, 1, "node", threads, cores);
}

#endif
