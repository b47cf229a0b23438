/* SPDX-License-Identifier: BSD-3-Clause */
/* test_digest_rows.c - digests read without a JSON tree equal those in the tree. */
#include <stdlib.h>
#include <string.h>

#include "collector/model/digest_rows.h"
#include "report_fixture.h"

#define HEAD "{\"ready\": 3, \"status\": \"running\""
#define TAIL ", \"digests_cut\": 4, \"digests_whole\": true}"
#define ROW(n) "[\"execute\", \"s\", \"p\", \"thread-cpu\", \"seconds\", " n "]"

static bool split(const char *json, struct digest_rows *rows, struct buf *rest)
{
	return digest_rows_split((struct text){json, strlen(json)}, rows, rest);
}

static void test_rows_and_rest(void **state)
{
	static const char json[] = HEAD ", \"digests\": [" ROW(
		"0.5") ", "
		       "[\"get-data\", null, null, \"serialize], [\", \"\", -12e-1]]" TAIL;
	static const char left[] = HEAD TAIL;
	struct digest_rows rows = {0};
	struct buf rest = BUF_INIT;

	(void)state;
	assert_true(split(json, &rows, &rest));
	assert_int_equal(rest.len, sizeof(left) - 1);
	assert_memory_equal(rest.data, left, rest.len);
	assert_int_equal(rows.n, 2);
	assert_memory_equal(rows.v[0].text[DIGEST_CONTEXT].ptr, "execute", 7);
	assert_int_equal(rows.v[0].text[DIGEST_CONTEXT].len, 7);
	assert_memory_equal(rows.v[0].text[DIGEST_UNIT].ptr, "seconds", 7);
	assert_true(rows.v[0].value == 0.5);
	assert_null(rows.v[1].text[DIGEST_SPAN].ptr);
	assert_null(rows.v[1].text[DIGEST_PREFIX].ptr);
	assert_int_equal(rows.v[1].text[DIGEST_ACTIVITY].len, strlen("serialize], ["));
	assert_non_null(rows.v[1].text[DIGEST_UNIT].ptr);
	assert_int_equal(rows.v[1].text[DIGEST_UNIT].len, 0);
	assert_true(rows.v[1].value == -1.2);
	free(rows.v);
	buf_release(&rest);
}

static void test_none(void **state)
{
	struct digest_rows rows = {0};
	struct buf rest = BUF_INIT;

	(void)state;
	assert_true(split(HEAD ", \"digests\": []" TAIL, &rows, &rest));
	assert_int_equal(rows.n, 0);
	assert_int_equal(rest.len, strlen(HEAD TAIL));
	buf_release(&rest);
}

/* Text that a JSON parser may read differently, or refuse. */
static void test_left_to_the_parser(void **state)
{
	static const char *const lists[] = {
		"[" ROW("1") "," ROW("2") "]",
		"[" ROW("1") ", ]",
		"[" ROW("1"),
		"[" ROW("01") "]",
		"[" ROW("-") "]",
		"[" ROW(".5") "]",
		"[" ROW("5.") "]",
		"[" ROW("+5") "]",
		"[" ROW("1e") "]",
		"[" ROW("1e999") "]",
		"[" ROW("NaN") "]",
		"[" ROW("null") "]",
		"[" ROW("12345678901234567890") "]",
		"[[\"a\", \"b\", \"c\", \"d\", 1]]",
		"[[\"a\", \"b\", \"c\", \"d\", \"e\", 1, 2]]",
		"[[\"a\\n\", \"b\", \"c\", \"d\", \"e\", 1]]",
		"[[\"\xc3\xa4\", \"b\", \"c\", \"d\", \"e\", 1]]",
		"[[\"a\x01\", \"b\", \"c\", \"d\", \"e\", 1]]",
		"[[1, \"b\", \"c\", \"d\", \"e\", 1]]",
		"null",
	};
	char json[512];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		struct digest_rows rows = {0};
		struct buf rest = BUF_INIT;

		snprintf(json, sizeof(json), HEAD ", \"digests\": %s" TAIL, lists[i]);
		if (split(json, &rows, &rest))
			fail_msg("%s", json);
		free(rows.v);
		buf_release(&rest);
	}
}

/* No prefix of a text is read beyond its end, or taken for the whole. */
static void test_every_prefix(void **state)
{
	static const char json[] =
		HEAD ", \"digests\": [" ROW("0.5") ", " ROW("7") "], \"digests_cut\": ";
	size_t n;

	(void)state;
	for (n = 0; n < sizeof(json); n++) {
		struct digest_rows rows = {0};
		struct buf rest = BUF_INIT;
		char *cut = malloc(n ? n : 1);

		memcpy(cut, json, n);
		assert_int_equal(digest_rows_split((struct text){cut, n}, &rows, &rest),
				 n == sizeof(json) - 1);
		free(cut);
		free(rows.v);
		buf_release(&rest);
	}
}

static void check_worker(const char *json, size_t bad)
{
	struct fixture *fx = fx_new();
	const struct worker *w;

	fx_hello(fx, 1, "{}");
	fx_dask(fx, 1, 1000, json);
	w = fx->m.workers.v[0];
	assert_int_equal(fx->m.records_bad, bad);
	if (!bad) {
		assert_int_equal(w->probes.n, 1);
		assert_true(w->probes.v[0].ready == 3);
		assert_int_equal(w->digests_cut, 4);
		assert_true(w->digests_whole);
		assert_int_equal(w->digests.n, 2);
		assert_string_equal(w->digests.v[0].span, "s");
		assert_string_equal(w->digests.v[0].activity, "thread-cpu");
		assert_true(w->digests.v[0].value == 0.5);
		assert_null(w->digests.v[1].span);
		assert_true(w->digests.v[1].value == 9);
		assert_int_equal(w->outside.n, 1);
		assert_true(w->outside.v[0].v[OUTSIDE_SERIALIZE] == 9);
	}
	fx_free(fx);
}

#define OUTSIDE "[\"get-data\", null, null, \"serialize\", \"seconds\", 9]"

/* Both ways give the same model; damage elsewhere makes a bad record. */
static void test_both_ways(void **state)
{
	(void)state;
	check_worker(HEAD ", \"digests\": [" ROW("0.5") ", " OUTSIDE "]" TAIL, 0);
	check_worker(HEAD ",\"digests\": [" ROW("0.5") "," OUTSIDE "]" TAIL, 0);
	check_worker(HEAD ", \"digests\": [" ROW("0.5") ", " OUTSIDE "]", 1);
	check_worker(HEAD " x, \"digests\": [" ROW("0.5") ", " OUTSIDE "]" TAIL, 1);
	check_worker("{\"other\": {\"a\": 1, \"digests\": []}, \"ready\": 3, \"digests\": [" ROW(
			     "0.5") ", " OUTSIDE "]" TAIL,
		     0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_and_rest),	   cmocka_unit_test(test_none),
		cmocka_unit_test(test_left_to_the_parser), cmocka_unit_test(test_every_prefix),
		cmocka_unit_test(test_both_ways),
	};

	return cmocka_run_group_tests_name("digest_rows", tests, NULL, NULL);
}
