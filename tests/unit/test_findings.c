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

/* Each number of a sentence can be verified: a finding has evidence, and all of it is known. */
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
		if (!strcmp(f->id, "metadata_reread"))
			assert_non_null(strstr(f->advice, "chunksize="));
		found_free(&found);
		fx_free(fx);
	}
}

static void check_text(const struct findings *list);
static void check_json(const struct findings *list);

static void assert_sentence(struct fixture *fx, const char *id, const char *sentence)
{
	const struct finding *f;
	struct found found;

	collect(fx, &found);
	f = finding_of(&found, id);
	assert_non_null(f);
	assert_string_equal(f->sentence, sentence);
	found_free(&found);
	fx_free(fx);
}

/*
 * Computed by hand. LZMA: 200 MB in 1 s, a quarter of 4 s. ZSTD: 100 MB in 0.1 s, so 200 MB would
 * take 0.2 s: 0.8 s less. Chunks: 20 times 62,500 bytes in addition to 187,500 of baskets; with
 * chunks of 5,000 there are 4, which is 16 times 62,500 bytes less.
 */
static void test_worked_examples(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	case_decompression(fx, AT);
	codec(fx, "cramjam.cramjam.zstd.decompress_into", "zstd", 1, 100000000, 100);
	assert_sentence(
		fx, "decompression",
		"25 % of the tasks' CPU time (1.000 s of 4.000 s) is LZMA decompression; at "
		"the 1000 MB/s at which this run decompressed ZSTD, it would save 800.0 ms");
	fx = fx_new();
	case_decompression(fx, AT); /* too little of the other one to derive a speed */
	codec(fx, "cramjam.cramjam.zstd.decompress_into", "zstd", 1, 999999, 1);
	assert_sentence(fx, "decompression",
			"25 % of the tasks' CPU time (1.000 s of 4.000 s) is LZMA decompression");
	fx = fx_new();
	case_metadata_reread(fx, AT);
	assert_sentence(fx, "metadata_reread",
			"chunks of 1,000 events read 25 % outside of their baskets (metadata, "
			"gaps; 1.250 MB of 5.000 MB): a chunksize of 5,000 would save 1.000 MB");
	fx = fx_new();
	case_memory_growth(fx, AT); /* 100 MB over 6 tasks; 400 MB remain */
	assert_sentence(fx, "memory_growth",
			"the memory of 'node:1' grew from 500.0 MB to 600.0 MB, 16.67 MB per task; "
			"at this rate it reaches its limit of 1.000 GB in 24 tasks");
	fx = fx_new();
	case_idle_threads(fx, AT);
	assert_sentence(fx, "idle_threads",
			"threads had no task for 50 % of the time: 2 of 4 thread-seconds");
}

/* 24 tasks to the limit after 6, and 6,024 if the worker has a hundred times the memory. */
static void test_growth_far_from_the_limit(void **state)
{
	static const char *const limits[] = {
		"{\"nthreads\": 1, \"memory_limit_bytes\": 1000000000}",
		"{\"nthreads\": 1, \"memory_limit_bytes\": 101000000000}"};
	struct fixture *fx;
	struct found found;
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		fx = fx_new();
		case_memory_growth(fx, AT);
		fx_dask(fx, 1, 600, limits[i]);
		collect(fx, &found);
		assert_int_equal(finding_of(&found, "memory_growth")->severity,
				 i ? FINDING_NOTE : FINDING_HIGH);
		found_free(&found);
		fx_free(fx);
	}
}

/*
 * Totals that are read while a thread folds its numbers miss some of them. A task of 10 s begins at
 * 1 s; per case, MB sent and received at 0.5 s, and then each second. No case may count more than
 * what left the worker from 1.5 s on, and of what it received since then all counts.
 */
static void test_totals_that_fall(void **state)
{
	enum { SENT_POINTS = 5 };
	static const struct {
		int sent[SENT_POINTS], received[SENT_POINTS];
		double bytes; /* without the messages that are deducted; 0: no finding */
	} cases[] = {
		{{0, 0, 5, 4, 6}, {0, 0, 0, 0, 0}, 0},
		{{0, 100, 300, 290, 400}, {0, 0, 0, 0, 0}, 300e6},
		{{0, 100, 200, 300, 400}, {0, 50, 70, 60, 80}, 270e6},
		/* the first totals in the run, of one of both */
		{{90, 80, 100, 200, 300}, {0, 0, 0, 0, 0}, 200e6},
		{{0, 0, 100, 200, 300}, {90, 80, 100, 100, 100}, 200e6},
		/* the latest ones: those that correct them have yet to come */
		{{0, 0, 100, 300, 200}, {0, 0, 0, 0, 0}, 300e6},
		{{0, 0, 100, 300, 400}, {0, 0, 0, 100, 50}, 200e6},
		/* what stays lower had never been there */
		{{0, 0, 100, 200, 300}, {0, 100, 90, 80, 80}, 300e6},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fixture *fx = fx_new();
		struct task_record r = work(1, "a", 1000, 11000);
		const struct finding *f;
		struct found found;

		fx_hello(fx, 1, "{}");
		fx_task(fx, 1, &r);
		for (int k = 0; k < SENT_POINTS; k++)
			sent(fx, 500 + 1000 * k, true, (uint64_t)cases[i].sent[k] * 1000000,
			     (uint64_t)cases[i].received[k] * 1000000);
		collect(fx, &found);
		f = finding_of(&found, "large_results");
		if (f ? !cases[i].bytes : cases[i].bytes > 0)
			fail_msg("case %zu: %s", i, f ? f->sentence : "none");
		/* 10 kB for the task, and 100 kB/s over at most 3 s */
		if (f)
			assert_in_range(
				(uint64_t)(cases[i].bytes -
					   value_number(evidence_of(f, "sent_bytes"), NULL)),
				10000, 310000);
		found_free(&found);
		fx_free(fx);
	}
}

/* A run with hostile names: sentences stay short and printable, and the evidence has complete
 * names. */
static void test_hostile_names(void **state)
{
	static char name[4097];
	struct fixture *fx = fx_new();
	const struct finding *f;
	struct task_record r;
	struct found found;
	size_t i;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	memcpy(name, "\"<script>\n\033[31m\xff\xc2\x9b%s%n", 20);
	fx_hello(fx, 1, "{}");
	r = chunk(1, "a", 0, 2000, name, 0, 1000);
	TASK_SET(&r, dataset, T(name));
	TASK_SET(&r, prefix, T(name));
	fx_task(fx, 1, &r);
	r = chunk(2, "b", 3000, 5000, "/b", 0, 9000);
	fx_task(fx, 1, &r);
	collect(fx, &found);
	f = finding_of(&found, "dataset_imbalance");
	assert_non_null(f);
	assert_true(strlen(f->sentence) < 300);
	for (i = 0; f->sentence[i]; i++)
		assert_true((unsigned char)f->sentence[i] >= 0x20);
	assert_null(strstr(f->sentence, "\xff"));
	assert_null(strstr(f->sentence, "\xc2\x9b"));
	assert_string_equal(evidence_of(f, "dataset").v.s, name);
	check_text(&found.list);
	check_json(&found.list);
	found_free(&found);
	fx_free(fx);
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

/* No line is longer than 79 columns, and without colour there are no escapes. */
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

/* n times a character, followed by the next argument */
static const char *times(size_t n, const char *character)
{
	static char text[8][400];
	static size_t which;
	char *at = text[which++ % 8];

	for (*at = 0; n; n--)
		strcat(at, character);
	return at;
}

/* 68 columns remain for the words: characters count, not bytes, and a number stays with its
 * unit. */
static void test_lines_are_full(void **state)
{
	struct finding one = {.severity = FINDING_WARNING, .cost_s = NAN, .of_s = NAN};
	struct findings list = {.v = &one, .n = 1};
	struct buf out = BUF_INIT;
	struct sink s = {.out = &out};
	char text[2000], expected[2000];

	(void)state;
	snprintf(text, sizeof(text), "%s %s %s d %s 12 MB %s 123456 MB %s 1234567 bytes",
		 times(40, "\xc3\xa4"), times(27, "b"), times(68, "\xe2\x82\xac"), times(62, "e"),
		 times(58, "f"), times(66, "g"));
	snprintf(expected, sizeof(expected),
		 "  WARNING  %s %s\n           %s\n           d %s\n           12 MB %s\n"
		 "           123456 MB\n           %s\n           1234567 bytes\n           "
		 "advice\n",
		 times(40, "\xc3\xa4"), times(27, "b"), times(68, "\xe2\x82\xac"), times(62, "e"),
		 times(58, "f"), times(66, "g"));
	one.sentence = text;
	one.advice = "advice";
	findings_text(&list, &s, false);
	assert_int_equal(buf_add(&out, "", 1), 0);
	assert_non_null(strstr((const char *)out.data, expected));
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

/* Four attempts of 10 s that failed, half of it waiting; counted attempts have 20 ms. */
static void test_a_failed_run_is_judged_by_all_attempts(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r;
	struct found found;
	const struct finding *f;
	char key[8];
	int i;

	(void)state;
	fx_hello(fx, 1, "{\"nthreads\": 4}");
	for (i = 0; i < 5; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		r = work((uint64_t)i + 1, key, 0, i ? 10000 : 20);
		SET_OWN(&r, gil_wait, i ? 5000 : 0);
		if (i)
			TASK_SET(&r, status, T("erred"));
		fx_task(fx, 1, &r);
	}
	long_wait(fx, "network_wait_ns", UINT64_C(8000000000), true);
	collect(fx, &found);
	f = finding_of(&found, "gil_wait");
	assert_non_null(f);
	assert_near(evidence_of(f, "task_wall_seconds"), 40.02);
	assert_near(evidence_of(f, "percent"), 20 / 40.02 * 100);
	assert_string_equal(evidence_of(f, "tasks").v.s, "all attempts");
	assert_null(finding_of(&found, "blocked_site")); /* gil_wait covers it */
	assert_near(metric_value(found.report.facts, "gil_wait_seconds"), 0); /* of counted tasks */
	found_free(&found);
	fx_free(fx);
}

/* Chunks of files in which no basket and no page was seen have another format: it is not reported
 * that they read everything outside of baskets. */
static void test_no_baskets(void **state)
{
	struct fixture *fx = fx_new();
	struct found found;

	(void)state;
	chunks_of(fx, 250000, 0, true);
	collect(fx, &found);
	assert_null(finding_of(&found, "metadata_reread"));
	assert_string_equal(gap_of(&found, "metadata_reread"), "basket_bytes");
	found_free(&found);
	fx_free(fx);
}

/* A task waited 1 s for a core and 2 s for its own threads, which waited for a core half of that
 * time. */
static void test_a_sum_has_not_the_name_of_a_metric(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r = work(1, "a", 0, 4000);
	const struct finding *f;
	struct found found;

	(void)state;
	fx_hello(fx, 1, "{\"nthreads\": 4}");
	r.own[CREMA_T_runqueue] = 1000000000;
	r.own[CREMA_T_lock_wait] = 2000000000;
	r.pool[CREMA_T_runqueue] = 1000000000;
	r.count[CREMA_C_pool_wall_ns] = 2000000000;
	fx_task(fx, 1, &r);
	collect(fx, &found);
	f = finding_of(&found, "run_queue");
	assert_non_null(f);
	assert_near(evidence_of(f, "queued_seconds"), 2);
	assert_near(evidence_of(f, "runqueue_wait_seconds"), 1);
	found_free(&found);
	fx_free(fx);
}

static void test_nothing_to_report(void **state)
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
	assert_non_null(strstr(line, "no findings: "));
	assert_non_null(strstr(line, " could not be made (unknown: "));
	assert_non_null(strstr(line, "gil_wait_seconds"));
	found_free(&found);
	fx_free(fx);
}

/* If space is short, the sentence's later clauses are omitted first, then the cost, then the
 * advice. */
static void test_brief(void **state)
{
	static const struct {
		size_t lines;
		const char *want;
	} t[] = {
		{7, "  WARNING  one; two; three\n           costs about 2.0 of 4.0 s\n"
		    "           do this\n"},
		{6, "  WARNING  one; two; three\n           costs about 2.0 of 4.0 s\n"
		    "           do this\n"},
		{5, "  WARNING  one\n           do this\n"},
		{4, "  WARNING  one\n"},
		{0, "  WARNING  one\n"},
	};
	struct finding one = {.id = "x",
			      .severity = FINDING_WARNING,
			      .sentence = "one; two; three",
			      .advice = "do this",
			      .cost_s = 2,
			      .of_s = 4,
			      .gain_s = (double)NAN};
	struct findings list = {.v = &one, .n = 1};
	struct buf text = BUF_INIT;
	struct sink s = {.out = &text};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		buf_clear(&text);
		findings_brief(&list, 3, t[i].lines, &s, false);
		sink_put(&s, "", 1);
		assert_non_null(strstr((const char *)text.data, t[i].want));
		assert_string_equal(strstr((const char *)text.data, "  WARNING"), t[i].want);
	}
	assert_string_equal(one.sentence, "one; two; three");
	buf_release(&text);
}

/* Findings that do not fit on the screen are named there if they are warnings. */
static void test_more_than_fits(void **state)
{
	static const struct {
		size_t n, warnings;
		const char *want;
	} t[] = {
		{2, 1, "  and 1 more: --show findings\n"},
		{4, 3, "  and 3 more (second_of_them, third): --show findings\n"},
		{6, 6,
		 "  and 5 more (second_of_them, third, fourth_and_last, ...): --show "
		 "findings\n"},
	};
	static const char *const id[] = {"first",	    "second_of_them",  "third",
					 "fourth_and_last", "fifth_is_longer", "sixth"};
	struct finding v[6] = {0};
	struct findings list = {.v = v};
	struct buf text = BUF_INIT;
	struct sink s = {.out = &text, .width = 80};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		for (size_t k = 0; k < t[i].n; k++)
			v[k] = (struct finding){.id = id[k],
						.severity = k < t[i].warnings ? FINDING_WARNING
									      : FINDING_NOTE,
						.sentence = "a",
						.advice = "b",
						.cost_s = (double)NAN,
						.gain_s = (double)NAN};
		list.n = t[i].n;
		buf_clear(&text);
		findings_brief(&list, 1, 20, &s, false);
		sink_put(&s, "", 1);
		assert_string_equal(strstr((const char *)text.data, "  and"), t[i].want);
	}
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thresholds),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_evidence),
		cmocka_unit_test(test_worked_examples),
		cmocka_unit_test(test_growth_far_from_the_limit),
		cmocka_unit_test(test_totals_that_fall),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_counts_close),
		cmocka_unit_test(test_outputs),
		cmocka_unit_test(test_lines_are_full),
		cmocka_unit_test(test_a_failed_run_is_judged_by_all_attempts),
		cmocka_unit_test(test_a_sum_has_not_the_name_of_a_metric),
		cmocka_unit_test(test_nothing_to_report),
		cmocka_unit_test(test_no_baskets),
		cmocka_unit_test(test_brief),
		cmocka_unit_test(test_more_than_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
