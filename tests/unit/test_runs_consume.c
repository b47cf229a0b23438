/* SPDX-License-Identifier: BSD-3-Clause */
/* test_runs_consume.c - runs by scheduler, graph and what tasks consume; never by time alone. */
#include "fnv.h"
#include "report_fixture.h"

#include <math.h>

#define CHUNK CREMA_TASK_CHUNK
#define MERGE CREMA_TASK_MERGE
#define PRE CREMA_TASK_PREPROCESSING
#define SCATTER CREMA_TASK_SCATTER

static uint64_t attempts; /* of all workers: each number is used once */

/* A task of key `hash` that consumes the key `consumes`; 0: none. */
static void task(struct fixture *fx, int worker, const char *span, uint64_t flags, uint64_t hash,
		 uint64_t consumes, int start_ms)
{
	struct task_record r = fx_record(++attempts, "key", span, flags, start_ms, start_ms + 50);

	TASK_SET(&r, key_hash, hash);
	TASK_SET(&r, consumes, consumes);
	TASK_SET(&r, dataset, T("d"));
	TASK_SET(&r, filename, T("f.root"));
	fx_task(fx, worker, &r);
}

static struct run *run_of(struct fixture *fx, const char *span)
{
	size_t i, k;

	for (i = 0; i < fx->runs.n; i++) {
		for (k = 0; k < run_span_count(&fx->runs.v[i]); k++) {
			if (run_span(&fx->runs.v[i], k) &&
			    !strcmp(run_span(&fx->runs.v[i], k), span))
				return &fx->runs.v[i];
		}
	}
	return NULL;
}

static void test_a_merge_in_a_later_span(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	task(fx, 1, "s1.2ca", CHUNK, 11, 0, 0);
	task(fx, 1, "s1.2ca", CHUNK, 12, 0, 100);
	task(fx, 1, "s2.3ma", MERGE, 30, 11, 15000);
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 1);
	assert_int_equal(fx->runs.v[0].attempts.n, 3);
	assert_int_equal(fx->runs.v[0].kind, RUN_COFFEA);
	assert_true(fabs(fx->runs.v[0].wall - 15.05) < 1e-6);
	fx_free(fx);
}

/* Dask keeps the groups of a failed call, and puts later calls into their span: one call every
 * `every` ms, which may be less than the difference between the clocks of two hosts. */
static void same_keys_again(int every)
{
	struct fixture *fx = fx_new();
	char span[32];
	int i, n;

	fx_hello(fx, 1, NULL);
	for (i = 0; i < 3; i++) {
		n = 4 * i;
		snprintf(span, sizeof(span), "s1.%dca", n + 2);
		task(fx, 1, span, CHUNK, 11, 5, every * i);
		task(fx, 1, span, CHUNK, 12, 5, every * i + 100);
		snprintf(span, sizeof(span), "s1.%dm", n + 3);
		task(fx, 1, span, MERGE, 30, 11, every * i + 200);
		snprintf(span, sizeof(span), "s1.%dm", n + 4);
		task(fx, 1, span, MERGE, 40, 30, every * i + 300);
	}
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 3);
	for (i = 0; i < 3; i++) {
		assert_int_equal(fx->runs.v[i].attempts.n, 4);
		assert_true(fabs(fx->runs.v[i].wall - 0.35) < 1e-6);
		/* names that agents send are internal: they include Dask's own id */
		assert_string_equal(span_part_span(&fx->m, fx->runs.v[i].spans[0]), "s1");
	}
	fx_free(fx);
}

static void test_the_same_keys_again_in_one_span(void **state)
{
	(void)state;
	same_keys_again(1000);
	same_keys_again(400);
}

/* More keys than are kept: the smallest of each merge is among those of its chunks. */
static void test_many_chunks(void **state)
{
	struct fixture *fx = fx_new();
	uint64_t key[400], least;
	int i, k;

	(void)state;
	fx_hello(fx, 1, NULL);
	for (i = 0; i < 400; i++) {
		key[i] = hash_pair((uint64_t)i, 77);
		task(fx, 1, i < 200 ? "s.1ca" : "s.1cb", CHUNK, key[i], 5, i);
	}
	for (i = 0; i < 400; i += 20) {
		least = key[i];
		for (k = i; k < i + 20; k++)
			least = key[k] < least ? key[k] : least;
		task(fx, 1, i < 200 ? "t.2ma" : "t.2mb", MERGE, 1000 + (uint64_t)i, least,
		     1000 + i);
	}
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 2);
	assert_int_equal(fx->runs.v[0].attempts.n, 210);
	assert_int_equal(fx->runs.v[1].attempts.n, 210);
	fx_free(fx);
}

/* Merges that are not coffea's have the hash of the graph, here of ".1c" and ".7c": equal keys,
 * which recur while the first results are kept, are not mixed up. Tasks without a hash belong to a
 * run if all do. */
static void test_merges_of_the_users_own(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	task(fx, 1, "s.1c", CHUNK, 11, 0, 0);
	task(fx, 1, "s.0uebf27fb9", 0, 30, 11, 100);
	task(fx, 1, "s.7c", CHUNK, 11, 0, 200);
	task(fx, 1, "s.0uebf27fb9", 0, 31, 30, 250);
	task(fx, 1, "s.0uec035f23", 0, 32, 11, 300);
	task(fx, 1, "s", 0, 33, 31, 400);
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 2);
	assert_ptr_equal(run_of(fx, "s.0uebf27fb9"), run_of(fx, "s.1c"));
	assert_ptr_equal(run_of(fx, "s.0uec035f23"), run_of(fx, "s.7c"));
	assert_ptr_equal(run_of(fx, "s"), run_of(fx, "s.1c"));
	assert_int_equal(run_of(fx, "s.1c")->attempts.n, 4);
	fx_free(fx);
}

/* The client keeps each call's result: Dask puts the last task of later calls into the first
 * span. */
static void test_later_calls_in_the_first_span(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	task(fx, 1, "first", 0, 11, 0, 0);
	task(fx, 1, "first", 0, 21, 11, 100);
	task(fx, 1, "second", 0, 12, 0, 1000);
	task(fx, 1, "first", 0, 22, 12, 1100);
	task(fx, 1, "third", 0, 11, 0, 1900); /* the first call's own task, too */
	task(fx, 1, "third", 0, 13, 0, 2000);
	task(fx, 1, "third", 0, 23, 13, 2100);
	task(fx, 1, "fourth", 0, 14, 23, 3000); /* results made earlier prove nothing */
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 4);
	assert_true(run_of(fx, "first")->others.later);
	assert_int_equal(run_of(fx, "first")->others.sources, 1);
	assert_string_equal(run_of(fx, "first")->others.source_ids[0], run_of(fx, "second")->id);
	assert_string_equal(run_of(fx, "second")->others.lent_to, run_of(fx, "first")->id);
	assert_false(run_of(fx, "second")->others.later);
	assert_false(run_of(fx, "third")->others.later);
	assert_string_equal(run_of(fx, "third")->others.lent_to, "");
	assert_false(run_of(fx, "fourth")->others.later);
	fx_free(fx);
}

/* Only the smallest of many keys are kept: a key that may be the run's own proves nothing. */
static void test_own_keys_that_are_not_kept(void **state)
{
	struct fixture *fx = fx_new();
	int i;

	(void)state;
	fx_hello(fx, 1, NULL);
	for (i = 1; i <= 100; i++)
		task(fx, 1, "first", 0, (uint64_t)i, 0, i);
	task(fx, 1, "second", 0, 90, 0, 1000);
	task(fx, 1, "first", 0, 200, 90, 1100);
	fx_runs(fx);
	assert_false(run_of(fx, "first")->others.later);
	assert_string_equal(run_of(fx, "second")->others.lent_to, "");
	fx_free(fx);
}

static const char *merge_of(char out[64], const char *span, const char *chunks)
{
	uint64_t hash = crema_hash_more(CREMA_HASH_BEGIN, chunks, strlen(chunks));

	snprintf(out, 64, "%s.0u%x", span, (unsigned int)hash);
	return out;
}

/* Two calls within one generation, with equal keys: Dask has the last merge of both in one span. */
static void test_merges_in_the_span_before(void **state)
{
	static const char *const chunks[] = {"s1.1c", "s2.1c"};
	struct fixture *fx = fx_new();
	char merge[64], last[64];
	int i;

	(void)state;
	fx_hello(fx, 1, NULL);
	for (i = 0; i < 2; i++) {
		merge_of(merge, i ? "s2" : "s1", chunks[i]);
		merge_of(last, "s1", chunks[i]);
		task(fx, 1, chunks[i], CHUNK, 11, 0, 1000 * i);
		task(fx, 1, merge, 0, 30, 11, 1000 * i + 100);
		task(fx, 1, last, 0, 40 + (uint64_t)i, 30, 1000 * i + 200);
	}
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 2);
	for (i = 0; i < 2; i++) {
		assert_int_equal(run_of(fx, chunks[i])->attempts.n, 3);
		assert_ptr_equal(run_of(fx, merge_of(last, "s1", chunks[i])),
				 run_of(fx, chunks[i]));
	}
	fx_free(fx);
}

/* A reduction of several levels is one part that consumes its own results: an earlier call with
 * equal keys has them, too, but provided none. */
static void test_levels_of_a_users_merge(void **state)
{
	static const char *const chunks[] = {"s1.1c", "s2.1c"};
	static const char *const merges[] = {"s1.0uebf27fb9", "s2.0uebf27fb9"};
	struct fixture *fx = fx_new();
	int i;

	(void)state;
	fx_hello(fx, 1, NULL);
	for (i = 0; i < 2; i++) {
		task(fx, 1, chunks[i], CHUNK, 11, 0, 1000 * i);
		task(fx, 1, chunks[i], CHUNK, 12, 0, 1000 * i + 1);
		task(fx, 1, merges[i], 0, 30, 11, 1000 * i + 100);
		task(fx, 1, merges[i], 0, 40, 30, 1000 * i + 200);
	}
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 2);
	for (i = 0; i < 2; i++) {
		assert_ptr_equal(run_of(fx, merges[i]), run_of(fx, chunks[i]));
		assert_int_equal(run_of(fx, chunks[i])->attempts.n, 4);
	}
	fx_free(fx);
}

static void test_the_processor_goes_to_who_took_it_first(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r;

	(void)state;
	fx_hello(fx, 1, NULL);
	r = fx_record(++attempts, "lambda-1", "s1", 0, 0, 10); /* a task of the user's */
	TASK_SET(&r, prefix, T("lambda"));
	TASK_SET(&r, consumes, 0);
	fx_task(fx, 1, &r);
	task(fx, 1, "s1.1s5", SCATTER, 5, 0, 20);
	task(fx, 1, "s1.1c5", CHUNK, 11, 5, 100);
	task(fx, 1, "s1.9c5", CHUNK, 12, 5, 500);
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 3);
	assert_int_equal(run_of(fx, "s1.1c5")->attempts.n, 2);
	assert_string_equal(run_of(fx, "s1.1c5")->spans[2], "s1.1s5");
	assert_int_equal(run_of(fx, "s1.9c5")->attempts.n, 1);
	assert_int_equal(run_of(fx, "s1")->kind, RUN_OTHER);
	fx_free(fx);
}

/* Two schedulers at once; one of them preprocessed the files. */
static void two_schedulers(int pre)
{
	static const char *const stacks[] = {
		"{\"scheduler\": \"tcp://a:8786\"}",
		"{\"scheduler\": \"tcp://b:8786\"}",
		"{\"scheduler\": \"tcp://b:8786\"}",
	};
	struct fixture *fx = fx_new();
	int i;

	for (i = 0; i < 3; i++)
		fx_hello(fx, i + 1, stacks[i]);
	task(fx, pre, "p0.1p", PRE, 1, 0, 0);
	task(fx, 1, "a1.2c5", CHUNK, 11, 5, 200);
	task(fx, 2, "b1.2c5", CHUNK, 11, 5, 210); /* the same keys at the same time */
	task(fx, 1, "a1.3m", MERGE, 30, 11, 290);
	task(fx, 2, "b1.3m", MERGE, 30, 11, 300);
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 2);
	assert_ptr_equal(run_of(fx, "a1.2c5"), run_of(fx, "a1.3m"));
	assert_ptr_equal(run_of(fx, "b1.2c5"), run_of(fx, "b1.3m"));
	assert_int_equal(run_of(fx, "a1.2c5")->attempts.n, 2 + (pre == 1));
	assert_int_equal(run_of(fx, "b1.2c5")->attempts.n, 2 + (pre == 2));
	assert_ptr_equal(run_of(fx, "p0.1p"), run_of(fx, pre == 1 ? "a1.2c5" : "b1.2c5"));
	assert_int_equal(run_of(fx, "a1.2c5")->workers.n, 1);
	assert_int_equal(run_of(fx, "b1.2c5")->workers.n, 2); /* including the idle one */
	fx_free(fx);
}

static void test_schedulers_do_not_mix(void **state)
{
	(void)state;
	two_schedulers(1);
	two_schedulers(2);
}

/* A worker that ran a task of the run belongs to it, by whatever address it reaches the scheduler.
 */
static void test_one_scheduler_with_two_addresses(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, "{\"scheduler\": \"tls://127.0.0.1:8786\"}");
	fx_hello(fx, 2, "{\"scheduler\": \"tls://10.0.0.1:8786\"}");
	fx_hello(fx, 3, "{\"scheduler\": \"tls://10.0.0.1:8786\"}"); /* idle */
	task(fx, 1, "a1.2c5", CHUNK, 11, 5, 200);
	task(fx, 2, "a1.2c5", CHUNK, 12, 5, 210);
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 1);
	assert_int_equal(fx->runs.v[0].attempts.n, 2);
	assert_int_equal(fx->runs.v[0].workers.n, 2);
	fx_free(fx);
}

/* The hosts' local addresses are the same on each of them; a process may serve two schedulers. */
static void test_whose_scheduler(void **state)
{
	struct worker a = {.host = "x", .scheduler = "tcp://127.0.0.1:8786"}, b = a, c = a, d = a;

	(void)state;
	c.host = "y";
	d.scheduler = "tcp://127.0.0.1:9999";
	assert_true(workers_share_scheduler(&a, &b));
	assert_false(workers_share_scheduler(&a, &c));
	assert_false(workers_share_scheduler(&a, &d));
	d.schedulers = true;
	assert_true(workers_share_scheduler(&a, &d));
	a.scheduler = c.scheduler = "tcp://node:8786";
	assert_true(workers_share_scheduler(&a, &c));
}

/* Containers with the machine's network have host names of their own and share its local addresses;
 * those with a network of their own do not, even if they have the same name. */
static void test_whose_scheduler_in_containers(void **state)
{
	struct worker a = {.host = "x", .boot_id = "1", .net_namespace = value_uint(1)}, b, c, d, e;

	(void)state;
	a.scheduler = "tls://127.0.0.1:8786";
	b = c = d = e = a;
	b.host = "y";
	c.net_namespace = value_uint(2);
	d.boot_id = "2";
	e.net_namespace = value_null();
	assert_true(workers_share_scheduler(&a, &b));
	assert_false(workers_share_scheduler(&a, &c));
	assert_false(workers_share_scheduler(&a, &d));
	assert_true(workers_share_scheduler(&a, &e));
	assert_false(workers_share_scheduler(&b, &e));
	a.scheduler = b.scheduler = "inproc://10.0.0.1/7/1"; /* numbers of the container's own */
	assert_false(workers_share_scheduler(&a, &b));
}

/* The metadata must exist before the chunks are submitted. */
static void test_preprocessing_that_had_ended(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	task(fx, 1, "s.1pa", PRE, 1, 0, 0);
	task(fx, 1, "s.2pb", PRE, 2, 0, 90);
	task(fx, 1, "s.3c5", CHUNK, 11, 5, 100);
	task(fx, 1, "s.4c5", CHUNK, 12, 5, 200);
	fx_runs(fx);
	assert_string_equal(run_of(fx, "s.3c5")->spans[1], "s.1pa");
	assert_string_equal(run_of(fx, "s.4c5")->spans[1], "s.2pb");
	fx_free(fx);
}

/* A span that the user opened around the preprocessing alone is a run; its name is Dask's
 * default. */
static void test_preprocessing_in_the_users_span(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r;

	(void)state;
	fx_hello(fx, 1, NULL);
	task(fx, 1, "mine", PRE, 1, 0, 0);
	task(fx, 1, "s.3c5", CHUNK, 11, 5, 100);
	fx_runs(fx);
	assert_null(run_of(fx, "s.3c5")->spans[1]);
	assert_int_equal(run_of(fx, "mine")->kind, RUN_PREPROCESSING);
	fx_free(fx);

	fx = fx_new(); /* an agent that names no graphs: any span may be Dask's own */
	fx_hello(fx, 1, NULL);
	r = fx_record(++attempts, "key", "old", PRE, 0, 50);
	TASK_SET(&r, dataset, T("d"));
	TASK_SET(&r, filename, T("f.root"));
	fx_task(fx, 1, &r);
	task(fx, 1, "s.3c5", CHUNK, 11, 5, 100);
	fx_runs(fx);
	assert_string_equal(run_of(fx, "s.3c5")->spans[1], "old");
	fx_free(fx);
}

#define MINE CREMA_TASK_USERS_SPAN

/* Two measured clients submit the same graph: Dask runs a key once, in the span that had it first.
 */
static void test_equal_keys_of_two_clients(void **state)
{
	struct fixture *fx = fx_new();
	struct run *a, *b;

	(void)state;
	fx_hello(fx, 1, NULL);
	task(fx, 1, "alice", MINE | CHUNK, 11, 0, 0);
	task(fx, 1, "alice", MINE | CHUNK, 12, 0, 10);
	task(fx, 1, "alice", MINE, 30, 11, 100);
	task(fx, 1, "bob", MINE, 40, 12, 120); /* his own sum of her chunks */
	task(fx, 1, "bob", MINE, 41, 40, 200);
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 2);
	a = run_of(fx, "alice");
	b = run_of(fx, "bob");
	assert_int_equal(a->attempts.n, 3);
	assert_int_equal(b->attempts.n, 2);
	assert_int_equal(a->others.sources, 0);
	assert_int_equal(b->others.sources, 1);
	assert_string_equal(b->others.source_ids[0], a->id);
	fx_free(fx);

	fx = fx_new(); /* she did not measure: his span is still a run */
	fx_hello(fx, 1, NULL);
	task(fx, 1, "s.1c5", CHUNK, 11, 0, 0);
	task(fx, 1, "bob", MINE, 40, 11, 120);
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 2);
	assert_int_equal(run_of(fx, "s.1c5")->attempts.n, 1);
	assert_string_equal(run_of(fx, "bob")->others.source_ids[0], run_of(fx, "s.1c5")->id);
	fx_free(fx);
}

/* Coffea's merges whose group was first in an earlier span still belong to the measured run; tasks
 * that consume its results later do not. */
static void test_what_joins_the_users_span(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	task(fx, 1, "mine", MINE | CHUNK, 11, 0, 0);
	task(fx, 1, "s0.5m7", MERGE, 30, 11, 100);
	task(fx, 1, "s9", 0, 50, 30, 5000);
	task(fx, 1, "s8", 0, 51, 11, 6000);
	fx_runs(fx);
	assert_int_equal(run_of(fx, "mine")->attempts.n, 2);
	assert_ptr_equal(run_of(fx, "mine"), run_of(fx, "s0.5m7"));
	assert_int_equal(run_of(fx, "s8")->kind, RUN_OTHER);
	assert_string_equal(run_of(fx, "s8")->others.source_ids[0], run_of(fx, "mine")->id);
	fx_free(fx);
}

/* Two spans that the user opened in turn. Dask still had a result of the first, so it put the
 * second's merges into that span, too. */
static void test_merges_in_another_users_span(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	task(fx, 1, "a", MINE | CHUNK, 11, 0, 0);
	task(fx, 1, "a.3m1", MINE | MERGE, 20, 11, 60);
	task(fx, 1, "a.3m1", MINE | MERGE, 21, 20, 120);
	task(fx, 1, "b", MINE | CHUNK, 31, 0, 500);
	task(fx, 1, "a.5m2", MINE | MERGE, 40, 31, 560);
	task(fx, 1, "a.5m2", MINE | MERGE, 41, 40, 620);
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 2);
	assert_int_equal(run_of(fx, "a")->attempts.n, 3);
	assert_int_equal(run_of(fx, "b")->attempts.n, 3);
	assert_ptr_equal(run_of(fx, "a.5m2"), run_of(fx, "b"));
	fx_free(fx);
}

/* Merges without proof stay in the span that has them, and never join two spans. */
static void test_merges_stay_in_the_users_span(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	task(fx, 1, "a", MINE | CHUNK, 11, 0, 0);
	task(fx, 1, "b", MINE | CHUNK, 31, 0, 10);
	task(fx, 1, "b", MINE | CHUNK, 11, 0, 20);
	task(fx, 1, "a.3m", MINE | MERGE, 40, 11, 100); /* equal keys */
	task(fx, 1, "a.4m", MINE | MERGE, 41, 99, 200); /* its chunk is lost */
	task(fx, 1, "a.5m", MINE | MERGE, 42, 11, 300); /* from both */
	task(fx, 1, "a.5m", MINE | MERGE, 43, 31, 310);
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 2);
	assert_int_equal(run_of(fx, "a")->attempts.n, 5);
	assert_int_equal(run_of(fx, "b")->attempts.n, 2);
	assert_int_equal(run_of(fx, "a")->others.sources, 1); /* the report names b's results */
	assert_string_equal(run_of(fx, "a")->others.source_ids[0], run_of(fx, "b")->id);
	fx_free(fx);
}

/* Dask keeps the span of a block that failed, "a", and puts later tasks into it: the next block, a
 * block that has nothing in its own span, and coffea outside of blocks, which preprocessed earlier
 * and is not part of the blocks. */
static void test_blocks_in_an_older_span(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	task(fx, 1, "old.0p", PRE, 1, 0, -500);
	task(fx, 1, "a", MINE | PRE, 2, 0, 0);
	task(fx, 1, "a", MINE | CHUNK, 11, 0, 100);
	task(fx, 1, "b", MINE | PRE, 3, 0, 1000);
	task(fx, 1, "a.0bb", MINE | CHUNK, 12, 0, 1100);
	task(fx, 1, "a.0bb", MINE | MERGE, 30, 12, 1200);
	task(fx, 1, "a.0bblock-c", MINE | PRE, 4, 0, 2000);
	task(fx, 1, "x.0bblock-c", MINE | CHUNK, 13, 0, 2100);
	task(fx, 1, "a.9c5", CHUNK, 14, 0, 3000);
	task(fx, 1, "a.9m7", MERGE, 31, 14, 3100);
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 4);
	assert_ptr_equal(runs_find(&fx->runs, "a"), run_of(fx, "a"));
	assert_int_equal(run_of(fx, "a")->attempts.n, 2);
	assert_true(fabs(run_of(fx, "a")->wall - 0.15) < 1e-6);
	assert_ptr_equal(runs_find(&fx->runs, "b"), run_of(fx, "a.0bb"));
	assert_int_equal(run_of(fx, "b")->attempts.n, 3);
	assert_ptr_equal(runs_find(&fx->runs, "block-c"), run_of(fx, "a.0bblock-c"));
	assert_ptr_equal(run_of(fx, "x.0bblock-c"), run_of(fx, "a.0bblock-c"));
	assert_int_equal(run_of(fx, "a.0bblock-c")->attempts.n, 2);
	assert_int_equal(run_of(fx, "a.9c5")->attempts.n, 3);
	assert_ptr_equal(run_of(fx, "old.0p"), run_of(fx, "a.9c5"));
	/* Dask's own numbers of that span cover all of them */
	assert_int_equal(run_digest(run_of(fx, "b"), run_of(fx, "a")->spans[0],
				    run_of(fx, "a")->attempts.v[0]->prefix),
			 DIGEST_SHARED);
	fx_free(fx);
}

/* Alone, in parallel, one after the other, and with another scheduler. */
static void test_other_runs_on_the_workers(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, "{\"scheduler\": \"tcp://a:8786\"}");
	fx_hello(fx, 2, "{\"scheduler\": \"tcp://b:8786\"}");
	task(fx, 1, "one", MINE | CHUNK, 11, 0, 0);
	task(fx, 1, "one", MINE | CHUNK, 12, 0, 1000);
	task(fx, 1, "two", MINE | CHUNK, 13, 0, 500);
	task(fx, 1, "three", MINE | CHUNK, 14, 0, 1020);
	task(fx, 1, "four", MINE | CHUNK, 15, 0, 2000);
	task(fx, 2, "far", MINE | CHUNK, 16, 0, 0);
	task(fx, 2, "far", MINE | CHUNK, 17, 0, 3000);
	fx_runs(fx);
	assert_int_equal(run_concurrent(run_of(fx, "one")), 2);
	assert_int_equal(run_concurrent(run_of(fx, "two")), 1);
	assert_int_equal(run_concurrent(run_of(fx, "three")), 1);
	assert_int_equal(run_concurrent(run_of(fx, "four")), 0);
	assert_int_equal(run_concurrent(run_of(fx, "far")), 0);
	/* a client's block includes what ran before its first task and after its last one */
	assert_true(run_take_block(run_of(fx, "four"), BASE + 1.06, BASE + 4.0));
	assert_int_equal(run_concurrent(run_of(fx, "four")), 1);
	assert_true(run_take_block(run_of(fx, "two"), BASE + 0.5, BASE + 1.01));
	assert_int_equal(run_concurrent(run_of(fx, "two")), 1);
	assert_true(run_take_block(run_of(fx, "two"), BASE + 0.5, BASE + 1.03));
	assert_int_equal(run_concurrent(run_of(fx, "two")), 2);
	fx_free(fx);
}

static void test_last_is_the_analysis(void **state)
{
	struct fixture *fx = fx_new();
	struct run *last;

	(void)state;
	fx_hello(fx, 1, NULL);
	task(fx, 1, "s1.1c5", CHUNK, 11, 5, 0);
	task(fx, 1, "s2", 0, 20, 0, 1000);
	fx_runs(fx);
	last = runs_find(&fx->runs, NULL);
	assert_int_equal(last->kind, RUN_COFFEA);
	runs_tell_others(&fx->runs, last);
	assert_int_equal(last->others.n, 1);
	assert_string_equal(last->others.ids[0], run_of(fx, "s2")->id);
	fx_free(fx);

	fx = fx_new(); /* long after it, other work is the latest run */
	fx_hello(fx, 1, NULL);
	task(fx, 1, "s1.1c5", CHUNK, 11, 5, 0);
	task(fx, 1, "s2", 0, 20, 0, 100000);
	task(fx, 1, "s3", 0, 21, 0, 101000);
	task(fx, 1, "s4", 0, 22, 0, 102000);
	fx_runs(fx);
	last = runs_find(&fx->runs, NULL);
	assert_ptr_equal(last, run_of(fx, "s4"));
	runs_tell_others(&fx->runs, last);
	assert_int_equal(last->others.n, 2); /* a loop of submits: each had its own span */
	fx_free(fx);
}

static void test_numbers_of_a_span_that_is_shared(void **state)
{
	struct fixture *fx = fx_new();
	const char *span, *chunks, *merges;

	(void)state;
	fx_hello(fx, 1, NULL);
	task(fx, 1, "s1.1c5", CHUNK, 11, 5, 0);
	task(fx, 1, "s1.2c6", CHUNK, 12, 6, 10);
	task(fx, 1, "s3.3c7", CHUNK, 13, 7, 20);
	fx_runs(fx);
	span = model_text(&fx->m, T("s1"));
	chunks = model_text(&fx->m, T("task"));
	merges = model_text(&fx->m, T("reduce"));
	assert_int_equal(run_digest(run_of(fx, "s1.1c5"), span, chunks), DIGEST_SHARED);
	assert_int_equal(run_digest(run_of(fx, "s1.1c5"), span, merges), DIGEST_OWN);
	assert_int_equal(run_digest(run_of(fx, "s3.3c7"), span, chunks), DIGEST_OTHER);
	assert_int_equal(run_digest(run_of(fx, "s3.3c7"), model_text(&fx->m, T("s3")), chunks),
			 DIGEST_OWN);
	fx_free(fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_merge_in_a_later_span),
		cmocka_unit_test(test_the_same_keys_again_in_one_span),
		cmocka_unit_test(test_many_chunks),
		cmocka_unit_test(test_merges_of_the_users_own),
		cmocka_unit_test(test_merges_in_the_span_before),
		cmocka_unit_test(test_levels_of_a_users_merge),
		cmocka_unit_test(test_the_processor_goes_to_who_took_it_first),
		cmocka_unit_test(test_schedulers_do_not_mix),
		cmocka_unit_test(test_one_scheduler_with_two_addresses),
		cmocka_unit_test(test_whose_scheduler),
		cmocka_unit_test(test_whose_scheduler_in_containers),
		cmocka_unit_test(test_preprocessing_that_had_ended),
		cmocka_unit_test(test_preprocessing_in_the_users_span),
		cmocka_unit_test(test_later_calls_in_the_first_span),
		cmocka_unit_test(test_own_keys_that_are_not_kept),
		cmocka_unit_test(test_equal_keys_of_two_clients),
		cmocka_unit_test(test_what_joins_the_users_span),
		cmocka_unit_test(test_merges_in_another_users_span),
		cmocka_unit_test(test_merges_stay_in_the_users_span),
		cmocka_unit_test(test_blocks_in_an_older_span),
		cmocka_unit_test(test_other_runs_on_the_workers),
		cmocka_unit_test(test_last_is_the_analysis),
		cmocka_unit_test(test_numbers_of_a_span_that_is_shared),
	};

	return cmocka_run_group_tests_name("runs by what tasks consume", tests, NULL, NULL);
}
