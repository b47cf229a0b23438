/* SPDX-License-Identifier: BSD-3-Clause */
/* test_server.c - rows of servers: each request is counted once, from any thread, and none is
 * lost. */
#include "harness.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "shim/count/server.h"

enum { THREADS = 4, EACH = 20000 };

static uint32_t id(const char *text)
{
	return arena_id(text, (uint32_t)strlen(text));
}

static void *ask_two_servers(void *arg)
{
	(void)arg;
	for (int i = 0; i < EACH; i++) {
		struct server_request r = {.scheme = id("http"),
					   .address = id(i % 2 ? "one:80" : "two:80"),
					   .read_bytes = 3,
					   .latency_ns = 2000};

		r.failed = i % 4 == 1;
		r.latency_ns += (uint64_t)i;
		server_count(&r);
	}
	return NULL;
}

static const struct crema_server *row(const char *address)
{
	const struct crema_server *found = NULL;

	for (unsigned int i = 0; i < CREMA_SHM_SERVERS; i++) {
		const struct crema_server *s = &crema_shm->server[i];

		if (s->state != 2 || s->address != (address ? id(address) : 0))
			continue;
		assert_null(found);
		found = s;
	}
	assert_non_null(found);
	return found;
}

static void threads_share_rows(void **state)
{
	const struct crema_server *s;
	pthread_t t[THREADS];
	uint64_t sum = 0;

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, ask_two_servers, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (uint64_t i = 1; i < EACH; i += 2)
		sum += 2000 + i;
	s = row("one:80");
	assert_int_equal(s->requests, THREADS * EACH / 2);
	assert_int_equal(s->failed, THREADS * EACH / 4);
	assert_int_equal(s->read_bytes, 3 * THREADS * EACH / 2);
	assert_int_equal(s->latency_sum_ns, THREADS * sum);
	assert_int_equal(s->latency_max_ns, 2000 + EACH - 1);
	assert_int_equal(row("two:80")->failed, 0);
	assert_int_equal(row("two:80")->latency_max_ns, 2000 + EACH - 2);
}

static void buckets_are_powers_of_two(void **state)
{
	static const uint64_t least[] = {0, 1024, 2048};

	(void)state;
	for (unsigned int i = 1; i < CREMA_LATENCY_BUCKETS; i++) {
		uint64_t from = UINT64_C(1) << (9 + i);

		assert_int_equal(crema_latency_bucket(from), i);
		assert_int_equal(crema_latency_bucket(from - 1), i - 1);
	}
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(crema_latency_bucket(least[i]), i);
	assert_int_equal(crema_latency_bucket(UINT64_MAX), CREMA_LATENCY_BUCKETS - 1);
}

static void a_row_belongs_to_the_span_of_the_task(void **state)
{
	struct harness_task h = harness_begin();
	struct server_request r = {.task = task_name(h.owner),
				   .scheme = id("root"),
				   .address = id("three:1094"),
				   .read_bytes = 7,
				   .latency_ns = 9};

	(void)state;
	task_slot(h.owner)->span = id("span");
	server_count(&r);
	assert_int_equal(row("three:1094")->span, id("span"));
	harness_end(&h);
	harness_free(&h);
}

static void what_does_not_fit_is_counted_together(void **state)
{
	char name[32];

	(void)state;
	for (int i = 0; i < 200; i++) {
		struct server_request r = {.scheme = id("http"), .read_bytes = 1, .latency_ns = 5};

		snprintf(name, sizeof(name), "host%d:80", i);
		r.address = id(name);
		server_count(&r);
	}
	/* three rows exist already, the last one is for the others */
	assert_int_equal(row(NULL)->requests, 200 - (CREMA_SHM_SERVERS - 1 - 3));
}

/* If the request names a file: that file's row, with the same span. */
static void a_files_requests_are_in_its_row(void **state)
{
	struct harness_task h = harness_begin();
	struct server_request r = {.task = task_name(h.owner),
				   .scheme = id("root"),
				   .address = id("three:1094"),
				   .url = id("root://three:1094//f.root"),
				   .read_bytes = 7000,
				   .latency_ns = 90000};
	const struct crema_file *f = NULL;

	(void)state;
	task_slot(h.owner)->span = id("span");
	server_count(&r);
	r.read_bytes = 500;
	r.latency_ns = 20000;
	r.failed = 1;
	server_count(&r);
	for (unsigned int i = 0; i < CREMA_SHM_FILES; i++)
		if (crema_shm->file[i].path == r.url)
			f = &crema_shm->file[i];
	assert_non_null(f);
	assert_int_equal(f->span, id("span"));
	assert_int_equal(f->kind, CREMA_FILE_REMOTE);
	assert_int_equal(f->requests, 2);
	assert_int_equal(f->network_read_bytes, 7500);
	assert_int_equal(f->latency_sum_ns, 110000);
	assert_int_equal(f->latency_max_ns, 90000);
	assert_int_equal(row("three:1094")->failed, 1);
	harness_end(&h);
	harness_free(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_share_rows),
		cmocka_unit_test(buckets_are_powers_of_two),
		cmocka_unit_test(a_row_belongs_to_the_span_of_the_task),
		cmocka_unit_test(a_files_requests_are_in_its_row),
		cmocka_unit_test(what_does_not_fit_is_counted_together),
	};

	return cmocka_run_group_tests_name("shim server", tests, harness_setup, NULL);
}
