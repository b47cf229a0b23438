/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_findings.c - each check of contract/findings.def at its thresholds, and what is printed.
 */
#include <jansson.h>
#include <math.h>

#include "findings_cases.h"

static void test_thresholds(void **state)
{
	struct fixture *fx;
	struct found found;
	size_t i;
	int side;

	(void)state;
	for (i = 0; i < findings_case_count; i++) {
		for (side = AT; side <= BELOW_SECOND; side++) {
			fx = fx_new();
			if (findings_cases[i].make(fx, side)) {
				collect(fx, &found);
				if ((side == AT) != !!finding_of(&found, findings_cases[i].id))
					fail_msg("%s, side %d: %s", findings_cases[i].id, side,
						 side == AT ? "found nothing" : "found something");
				if (gap_of(&found, findings_cases[i].id))
					fail_msg("%s, side %d: %s is unknown", findings_cases[i].id,
						 side, gap_of(&found, findings_cases[i].id));
				found_free(&found);
			} else {
				assert_int_equal(side, BELOW_SECOND);
			}
			fx_free(fx);
		}
	}
}

/* An unknown input gives no finding, and is named. */
static void test_unknown(void **state)
{
	const char *unknown;
	struct fixture *fx;
	struct found found;
	size_t i, n = 0;

	(void)state;
	for (i = 0; i < findings_case_count; i++) {
		fx = fx_new();
		if (findings_cases[i].make(fx, UNKNOWN)) {
			collect(fx, &found);
			assert_null(finding_of(&found, findings_cases[i].id));
			unknown = gap_of(&found, findings_cases[i].id);
			if (!unknown || !*unknown)
				fail_msg("%s does not name what is unknown", findings_cases[i].id);
			n++;
			found_free(&found);
		}
		fx_free(fx);
	}
	assert_true(n * 2 > findings_case_count);
}

/* Every number of a sentence can be looked up: a finding has evidence, and none of it is unknown.
 */
static void test_evidence(void **state)
{
	const struct finding *f;
	struct fixture *fx;
	struct found found;
	size_t i, k;

	(void)state;
	for (i = 0; i < findings_case_count; i++) {
		fx = fx_new();
		assert_true(findings_cases[i].make(fx, AT));
		collect(fx, &found);
		f = finding_of(&found, findings_cases[i].id);
		assert_non_null(f);
		assert_true(f->evidence_count > 0 && f->evidence_count < FINDING_EVIDENCE);
		for (k = 0; k < f->evidence_count; k++) {
			if (f->evidence[k].value.type == VALUE_NULL)
				fail_msg("%s: %s is unknown", f->id, f->evidence[k].name);
			assert_non_null(f->evidence[k].unit);
		}
		assert_true(strlen(f->sentence) > 20 && strlen(f->advice) > 20);
		found_free(&found);
		fx_free(fx);
	}
}

static void test_counts_close(void **state)
{
	struct fixture *fx = fx_new();
	struct found found;
	size_t i;

	(void)state;
	fx_hello(fx, 1, "{}");
	fx_simple(fx, 1, 1, "a", "span", 0, 0, 1000, "ok");
	collect(fx, &found);
	assert_int_equal(found.list.checks, findings_case_count);
	assert_int_equal(found.list.made + found.list.idle + found.list.gap_count,
			 findings_case_count);
	for (i = 1; i < found.list.n; i++)
		assert_true(found.list.v[i - 1].severity <= found.list.v[i].severity);
	found_free(&found);
	fx_free(fx);
}

/* Nothing is longer than 79 columns, and without colour nothing is an escape. */
static void check_text(const struct findings *list)
{
	struct buf out = BUF_INIT;
	struct sink s = {.out = &out};
	size_t i, columns = 0;

	findings_text(list, &s, false);
	assert_int_equal(s.error, 0);
	for (i = 0; i < out.len; i++) {
		if (out.data[i] == '\n') {
			assert_true(columns <= 79);
			columns = 0;
			continue;
		}
		assert_true(out.data[i] >= 0x20 && out.data[i] != 0x7f);
		columns += (out.data[i] & 0xc0) != 0x80;
	}
	buf_release(&out);
}

static void check_json(const struct findings *list)
{
	struct buf out = BUF_INIT;
	struct sink s = {.out = &out};
	struct json j;
	json_t *root;

	emit_init(&j, &s);
	emit_object(&j, NULL);
	findings_json(list, &j);
	emit_end(&j);
	root = json_loadb((const char *)out.data, out.len, 0, NULL);
	assert_non_null(root);
	assert_int_equal(json_array_size(json_object_get(root, "findings")), list->n);
	json_decref(root);
	buf_release(&out);
}

static void test_outputs(void **state)
{
	struct fixture *fx;
	struct found found;
	size_t i;

	(void)state;
	for (i = 0; i < findings_case_count; i++) {
		fx = fx_new();
		assert_true(findings_cases[i].make(fx, AT));
		collect(fx, &found);
		check_text(&found.list);
		check_json(&found.list);
		found_free(&found);
		fx_free(fx);
	}
}

static void test_nothing_to_remark(void **state)
{
	struct fixture *fx = fx_new();
	struct found found;
	const char *line;
	size_t i;

	(void)state;
	fx_hello(fx, 1, "{}");
	fx_simple(fx, 1, 1, "a", "span", 0, 0, 1000, "ok");
	collect(fx, &found);
	for (i = 0; i < found.list.n; i++)
		fail_msg("a run of which little is known: %s", found.list.v[i].sentence);
	line = findings_checked(&found.list);
	assert_non_null(strstr(line, "nothing to remark: "));
	assert_non_null(strstr(line, " could not be made (unknown: "));
	assert_non_null(strstr(line, "gil_wait_seconds"));
	found_free(&found);
	fx_free(fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thresholds), cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_evidence),   cmocka_unit_test(test_counts_close),
		cmocka_unit_test(test_outputs),	   cmocka_unit_test(test_nothing_to_remark),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
