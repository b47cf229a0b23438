/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report_fixture.h - synthetic frames for the tests of model, runs, metrics and report.
 *
 * A worker is one byte, repeated. Its boot time 1000 s is the UTC second BASE; times in tests are
 * milliseconds after that. With `twice` every frame is fed twice.
 */
#ifndef REPORT_FIXTURE_H
#define REPORT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "collector/metrics/metrics.h"
#include "common/frame.h"
#include "common/framefile.h"

#define BASE 1800000000u
#define BOOT UINT64_C(1000000000000)
#define AT(ms) (BOOT + (uint64_t)(ms)*1000000u)
#define UTC_NS(ms) (BASE * UINT64_C(1000000000) + (uint64_t)(ms)*1000000u)
#define T(s) ((struct text){(s), strlen(s)})
#define SET_OWN(r, id, ms)                                                                         \
	((r)->own[CREMA_T_##id] = (uint64_t)(ms)*1000000u, (r)->own_known |= 1u << CREMA_T_##id)
#define SET_POOL(r, id, ms)                                                                        \
	((r)->pool[CREMA_T_##id] = (uint64_t)(ms)*1000000u, (r)->pool_known |= 1u << CREMA_T_##id)
#define SET_COUNT(r, id, n)                                                                        \
	((r)->count[CREMA_C_##id] = (n), (r)->count_known |= UINT64_C(1) << CREMA_C_##id)

struct fixture {
	struct model m;
	struct runs runs;
	struct facts facts;
	bool twice, runs_built, facts_built;
	uint64_t seq[256];
	const struct wall *wall; /* the client's; NULL: no record */
	struct buf *file;	 /* if set, frames are added here instead of to the model */
};

__attribute__((unused)) static struct fixture *fx_new(void)
{
	struct fixture *fx = calloc(1, sizeof(*fx));

	assert_non_null(fx);
	model_init(&fx->m);
	return fx;
}

__attribute__((unused)) static void fx_free(struct fixture *fx)
{
	if (fx->facts_built)
		facts_release(&fx->facts);
	runs_release(&fx->runs);
	model_release(&fx->m);
	free(fx);
}

__attribute__((unused)) static void fx_frame(struct fixture *fx, uint8_t type, int worker,
					     uint32_t count, const struct buf *payload)
{
	struct crema_frame_header h;
	uint8_t id[16];
	int i;

	memset(id, worker, sizeof(id));
	h = frame_head(type, id, 1);
	h.first_seq = fx->seq[worker];
	h.count = count;
	fx->seq[worker] += count;
	if (fx->file) {
		assert_int_equal(frame_encode(fx->file, &h, payload->data, payload->len), 0);
		return;
	}
	for (i = 0; i < (fx->twice ? 2 : 1); i++)
		assert_int_equal(model_feed(&fx->m, &h, payload->data, payload->len), 0);
}

/* Starts one message of n pairs, which the caller packs and sends with fx_end(). */
static inline void fx_begin(msgpack_packer *pk, struct buf *b, unsigned int type, uint32_t n)
{
	pack_init(pk, b);
	pack_array(pk, 1);
	pack_array(pk, 2);
	pack_u64(pk, type);
	pack_map(pk, n);
}

static inline void fx_end(struct fixture *fx, int worker, struct buf *b)
{
	fx_frame(fx, CREMA_FRAME_DATA, worker, 1, b);
	buf_release(b);
}

__attribute__((unused)) static void fx_hello(struct fixture *fx, int worker, const char *stack)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	pack_init(&pk, &b);
	pack_map(&pk, 2);
	pack_text(&pk, "facts");
	pack_map(&pk, 7);
	pack_kv_text(&pk, "host", "node");
	pack_kv_u64(&pk, "net_namespace", worker < 3 ? 7 : 8);
	pack_kv_text(&pk, "boot_id", worker < 3 ? "one" : "other");
	pack_kv_u64(&pk, "pid", (uint64_t)worker);
	pack_kv_u64(&pk, "boot_ns", BOOT);
	pack_kv_u64(&pk, "real_ns", BASE * UINT64_C(1000000000));
	pack_kv_text(&pk, "stack", stack);
	pack_text(&pk, "task_fields");
	task_pack_names(&pk);
	fx_frame(fx, CREMA_FRAME_HELLO, worker, 0, &b);
	buf_release(&b);
}

/* A record with start and end; stop_ms < 0: still running. flags: CREMA_TASK_*. */
__attribute__((unused)) static struct task_record fx_record(uint64_t attempt, const char *key,
							    const char *span, uint64_t flags,
							    int start_ms, int stop_ms)
{
	struct task_record r;

	memset(&r, 0, sizeof(r));
	r.type = stop_ms < 0 ? CREMA_MSG_TASK_PROGRESS : CREMA_MSG_TASK_END;
	r.rev = 1;
	TASK_SET(&r, attempt, attempt);
	TASK_SET(&r, key, T(key));
	if (span)
		TASK_SET(&r, span, T(span));
	TASK_SET(&r, prefix, T("task"));
	TASK_SET(&r, flags, flags);
	TASK_SET(&r, start_boot_ns, AT(start_ms));
	TASK_SET(&r, status, stop_ms < 0 ? T("running") : T("ok"));
	if (stop_ms >= 0) {
		TASK_SET(&r, stop_boot_ns, AT(stop_ms));
		TASK_SET(&r, wall_ns, (uint64_t)(stop_ms - start_ms) * 1000000u);
	}
	return r;
}

__attribute__((unused)) static void fx_task(struct fixture *fx, int worker,
					    const struct task_record *r)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	pack_init(&pk, &b);
	pack_array(&pk, 1);
	task_encode(&pk, r);
	fx_frame(fx, CREMA_FRAME_DATA, worker, 1, &b);
	buf_release(&b);
}

/* A task without numbers, in one line. */
__attribute__((unused)) static void fx_simple(struct fixture *fx, int worker, uint64_t attempt,
					      const char *key, const char *span, uint64_t flags,
					      int start_ms, int stop_ms, const char *status)
{
	struct task_record r = fx_record(attempt, key, span, flags, start_ms, stop_ms);

	TASK_SET(&r, status, T(status));
	fx_task(fx, worker, &r);
}

/* A message that is a map: fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(5), ..., NULL) */
__attribute__((unused)) __attribute__((sentinel)) static void fx_map(struct fixture *fx, int worker,
								     uint64_t type, ...)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;
	const char *key;
	size_t n = 0;
	va_list ap;

	va_start(ap, type);
	while ((key = va_arg(ap, const char *))) {
		(void)va_arg(ap, uint64_t);
		n++;
	}
	va_end(ap);
	fx_begin(&pk, &b, type, n);
	va_start(ap, type);
	while ((key = va_arg(ap, const char *)))
		pack_kv_u64(&pk, key, va_arg(ap, uint64_t));
	va_end(ap);
	fx_end(fx, worker, &b);
}

__attribute__((unused)) static void fx_dask(struct fixture *fx, int worker, int ms,
					    const char *json)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	pack_init(&pk, &b);
	pack_array(&pk, 1);
	pack_array(&pk, 3);
	pack_u64(&pk, CREMA_MSG_DASK);
	pack_u64(&pk, AT(ms));
	pack_text(&pk, json);
	fx_frame(fx, CREMA_FRAME_DATA, worker, 1, &b);
	buf_release(&b);
}

__attribute__((unused)) static void fx_goodbye(struct fixture *fx, int worker, int ms,
					       const char *how)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	fx_begin(&pk, &b, CREMA_MSG_GOODBYE, 2);
	pack_kv_u64(&pk, "boot_ns", AT(ms));
	pack_kv_text(&pk, "how", how);
	fx_end(fx, worker, &b);
}

__attribute__((unused)) static void fx_runs(struct fixture *fx)
{
	assert_int_equal(model_close(&fx->m, 0), 0);
	assert_int_equal(runs_build(&fx->runs, &fx->m), 0);
}

/* The facts of the i-th run. */
__attribute__((unused)) static const struct facts *fx_facts(struct fixture *fx, size_t i)
{
	assert_true(i < fx->runs.n);
	if (fx->facts_built)
		facts_release(&fx->facts);
	assert_int_equal(facts_build(&fx->facts, &fx->runs.v[i]), 0);
	fx->facts_built = true;
	return &fx->facts;
}

__attribute__((unused)) static struct attempt *fx_attempt(const struct fixture *fx, int worker,
							  uint64_t number)
{
	size_t i;

	for (i = 0; i < fx->m.attempts.n; i++) {
		if (fx->m.attempts.v[i]->worker->id[0] == worker &&
		    fx->m.attempts.v[i]->attempt == number)
			return fx->m.attempts.v[i];
	}
	fail_msg("no attempt %llu of worker %d", (unsigned long long)number, worker);
	return NULL;
}

#define assert_uint_value(got, n)                                                                  \
	do {                                                                                       \
		struct value v_ = (got);                                                           \
		assert_int_equal(v_.type, VALUE_UINT);                                             \
		assert_int_equal(v_.v.u, (n));                                                     \
	} while (0)

#define assert_near(got, n)                                                                        \
	do {                                                                                       \
		bool known_;                                                                       \
		double d_ = value_number((got), &known_), n_ = (n);                                \
		assert_true(known_);                                                               \
		if (!(d_ - n_ < 1e-6 && n_ - d_ < 1e-6))                                           \
			fail_msg("%s = %.9g, not %.9g", #got, d_, n_);                             \
	} while (0)

#define assert_unknown(got) assert_int_equal((got).type, VALUE_NULL)

/* Removes a folder that a test has made. */
__attribute__((unused)) static int fx_remove(const char *dir)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

#endif
