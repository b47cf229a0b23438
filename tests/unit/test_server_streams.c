/* SPDX-License-Identifier: BSD-3-Clause */
/* test_server_streams.c - the table of streams: which are found again, forgotten, and refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collector/ingest/server_streams.h"

/* Chosen ids: they differ in one byte only. */
static const uint8_t *id(unsigned int n)
{
	static uint8_t worker[CREMA_WORKER_ID_BYTES];

	memcpy(worker + 3, &n, sizeof(n));
	return worker;
}

static void what_has_records_stays(void **state)
{
	struct server_streams s = {0};
	struct server_progress *p, *first;

	(void)state;
	first = server_streams_get(&s, id(1), 1);
	assert_non_null(first);
	assert_ptr_equal(server_streams_get(&s, id(1), 1), first);
	assert_ptr_not_equal(server_streams_get(&s, id(1), 2), first);
	assert_ptr_not_equal(server_streams_get(&s, id(2), 1), first);
	assert_int_equal(s.streams.n, 3);
	assert_int_equal(s.workers.n, 2);
	server_streams_use(first);
	first->next = 7;
	server_streams_leave(&s, first);
	assert_int_equal(server_streams_get(&s, id(1), 1)->next, 7);
	p = server_streams_get(&s, id(2), 1);
	server_streams_use(p);
	server_streams_use(p);
	server_streams_leave(&s, p);
	assert_int_equal(s.workers.n, 2); /* a stream of it remains */
	server_streams_leave(&s, p);
	assert_int_equal(s.streams.n, 2);
	assert_int_equal(s.workers.n, 1);
	server_streams_release(&s);
}

/* Each stream is found after any number of others were forgotten: a plain array has the expected
 * ones. */
static void holes_are_closed(void **state)
{
	enum { WORKERS = 40, STREAMS = 40 };
	static struct server_progress *there[WORKERS][STREAMS];
	struct server_streams s = {0};
	size_t used = 0, workers = 0, of[WORKERS] = {0};
	unsigned int seed = 7;

	(void)state;
	for (int i = 0; i < 60000; i++) {
		unsigned int w = (unsigned int)rand_r(&seed) % WORKERS;
		unsigned int n = (unsigned int)rand_r(&seed) % STREAMS;

		if (there[w][n]) {
			assert_ptr_equal(server_streams_get(&s, id(w), n), there[w][n]);
			server_streams_leave(&s, there[w][n]);
			there[w][n] = NULL;
			used--;
			workers -= !--of[w];
		} else {
			there[w][n] = server_streams_get(&s, id(w), n);
			assert_int_equal(there[w][n]->users, 0);
			server_streams_use(there[w][n]);
			used++;
			workers += !of[w]++;
		}
		assert_int_equal(s.streams.n, used);
		assert_int_equal(s.workers.n, workers);
	}
	for (unsigned int w = 0; w < WORKERS; w++)
		for (unsigned int n = 0; n < STREAMS; n++)
			if (there[w][n])
				assert_ptr_equal(server_streams_get(&s, id(w), n), there[w][n]);
	assert_int_equal(s.streams.n, used);
	server_streams_release(&s);
}

static void a_worker_has_so_many(void **state)
{
	struct server_streams s = {0};

	(void)state;
	assert_false(server_streams_full(&s, id(1), 1));
	for (uint64_t i = 0; i < SERVER_STREAMS_OF_WORKER; i++) {
		assert_false(server_streams_full(&s, id(1), i));
		assert_non_null(server_streams_get(&s, id(1), i));
	}
	assert_true(server_streams_full(&s, id(1), SERVER_STREAMS_OF_WORKER));
	assert_false(server_streams_full(&s, id(1), 5)); /* it already exists */
	assert_false(server_streams_full(&s, id(2), 1));
	s.streams.n = SERVER_STREAMS;
	assert_true(server_streams_full(&s, id(2), 1));
	server_streams_release(&s);
}

/* All streams of one worker, and as many of others: a lookup takes a few steps, whatever their
 * distribution. With one chain per worker a million of them would take 10 minutes. */
static void many_streams_are_quick(void **state)
{
	struct server_streams s = {0};

	(void)state;
	for (uint64_t i = 0; i < 1000000; i++)
		assert_non_null(server_streams_get(&s, id(1), i));
	assert_int_equal(s.workers.n, 1);
	assert_int_equal(s.streams.n, 1000000);
	server_streams_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_has_records_stays),
		cmocka_unit_test(holes_are_closed),
		cmocka_unit_test(a_worker_has_so_many),
		cmocka_unit_test(many_streams_are_quick),
	};

	return cmocka_run_group_tests_name("server_streams", tests, NULL, NULL);
}
