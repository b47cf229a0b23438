/* SPDX-License-Identifier: BSD-3-Clause */
/* test_metrics_outputs.c - each metric of the table is in JSON, in the list for people, and in
 * Prometheus' text under a name that follows its conventions. */
#include "report_fixture.h"

#include <ctype.h>

static struct fixture *one_task(void)
{
	struct fixture *fx = fx_new();
	struct task_record r = fx_record(1, "k", "s", CREMA_TASK_CHUNK, 0, 2000);

	fx_hello(fx, 1, "{\"nthreads\": 2, \"memory_limit_bytes\": 1000}");
	SET_COUNT(&r, read_bytes, 5000000);
	TASK_SET(&r, coffea_bytesread, 4000000);
	TASK_SET(&r, columns, T("Jet_pt\nMET_pt"));
	TASK_SET(&r, rss_peak_bytes, 900);
	fx_task(fx, 1, &r);
	fx_runs(fx);
	return fx;
}

static char *rendered(struct buf *b)
{
	assert_int_equal(buf_add(b, "", 1), 0);
	return (char *)b->data;
}

static void test_prometheus(void **state)
{
	struct fixture *fx = one_task();
	struct buf b = BUF_INIT;
	struct sink s = {.out = &b};
	char name[METRIC_PROMETHEUS_BYTES], line[METRIC_PROMETHEUS_BYTES + 20], *text, *first;
	size_t i;

	(void)state;
	metrics_prometheus(fx_facts(fx, 0), &s);
	assert_int_equal(s.error, 0);
	text = rendered(&b);
	for (i = 0; i < metric_count; i++) {
		if (!*metric_prometheus_name(&metric_table[i], name))
			continue;
		snprintf(line, sizeof(line), "\n# TYPE %s gauge\n", name);
		first = strstr(text, line);
		if (!first || strstr(first + 1, line))
			fail_msg("%s is there not once", name);
	}
	/* 5 MB in 2 s are 2,500,000 B/s; 4 MB requested are 0.016 Gbit/s, 2,000,000 B/s */
	assert_non_null(strstr(text, "\ncrema_run_read_rate_bytes_per_second 2500000\n"));
	assert_non_null(strstr(text, "\ncrema_run_overall_rate_bytes_per_second 2000000\n"));
	assert_non_null(strstr(text, "\ncrema_run_wall_time_seconds 2\n"));
	assert_non_null(strstr(text, "\ncrema_run_num_columns 2\n"));
	assert_null(strstr(text, "\ncrema_run_decompress_calls ")); /* unknown: no sample, not 0 */
	buf_release(&b);
	fx_free(fx);
}

static const char *suffixes[] = {"_bytes", "_seconds", "_ratio", "_bytes_per_second", "_hertz", ""};

/* Units of metrics.def are valid; a gauge's name ends in its base unit and in no other. */
static void test_units(void **state)
{
	char name[METRIC_PROMETHEUS_BYTES];
	const struct metric_unit *u;
	const char *p;
	size_t i, k;

	(void)state;
	for (i = 0; i < metric_count; i++) {
		u = metric_unit(metric_table[i].unit);
		if (!u)
			fail_msg("%s: unit '%s' is not known", metric_table[i].id,
				 metric_table[i].unit);
		if (!*metric_prometheus_name(&metric_table[i], name)) {
			assert_int_not_equal(metric_table[i].kind, METRIC_NUM);
			continue;
		}
		for (p = name; *p; p++)
			assert_true(islower((unsigned char)*p) || isdigit((unsigned char)*p) ||
				    *p == '_');
		for (k = 0; k < sizeof(suffixes) / sizeof(*suffixes); k++) {
			if (!strcmp(suffixes[k], u->suffix))
				break;
		}
		assert_true(k < sizeof(suffixes) / sizeof(*suffixes));
		assert_true(strlen(name) > strlen(u->suffix) &&
			    !strcmp(name + strlen(name) - strlen(u->suffix), u->suffix));
		assert_null(strstr(name, "__"));
	}
}

struct seen {
	size_t n, texts;
	const char *want;
	char text[80];
};

static void see(void *arg, const struct metric *m, struct value v, const char *text)
{
	struct seen *seen = arg;

	(void)v;
	seen->n++;
	seen->texts += text && *text;
	assert_true(m->group < METRIC_GROUPS);
	assert_true(*metric_group_titles[m->group] != '\0');
	if (!strcmp(m->id, seen->want))
		snprintf(seen->text, sizeof(seen->text), "%s", text);
}

static void assert_text(const struct facts *f, const char *id, const char *text)
{
	struct seen seen = {.want = id};

	metrics_each(f, see, &seen);
	assert_int_equal(seen.n, metric_count);
	assert_int_equal(seen.texts, metric_count);
	assert_string_equal(seen.text, text);
}

static void test_texts(void **state)
{
	struct fixture *fx = one_task();
	const struct facts *f = fx_facts(fx, 0);

	(void)state;
	assert_text(f, "read_rate_mbs", "2.500 MB/s");
	assert_text(f, "columns", "[\"Jet_pt\", \"MET_pt\"]");
	assert_text(f, "decompress_calls", "unknown");
	assert_text(f, "wall_time_source", "workers");
	assert_text(f, "span_metrics", "unknown");
	assert_text(f, "per_worker", "1 entry");
	fx_free(fx);
}

/* 5 MB were read: in the client's 4 s that is half the rate of the workers' 2 s. */
static void test_client_wall(void **state)
{
	struct fixture *fx = one_task();
	const struct facts *f = fx_facts(fx, 0);

	(void)state;
	facts_client_wall(&fx->facts, 4);
	assert_text(f, "wall_time_source", "client");
	assert_text(f, "wall_time", "4.000 s");
	assert_text(f, "workers_wall_time", "2.000 s");
	assert_text(f, "read_rate_mbs", "1.250 MB/s");
	fx_free(fx);
}

static void assert_once(const char *text, const char *member)
{
	const char *first = strstr(text, member);

	if (!first || strstr(first + 1, member))
		fail_msg("not once in JSON: %s", member);
}

static void test_json(void **state)
{
	struct fixture *fx = one_task();
	struct buf b = BUF_INIT;
	struct sink s = {.out = &b};
	struct json j;
	char member[100];
	size_t i;
	char *text;

	(void)state;
	emit_init(&j, &s);
	emit_object(&j, NULL);
	metrics_emit(fx_facts(fx, 0), &j);
	emit_end(&j);
	text = rendered(&b);
	for (i = 0; i < metric_count; i++) {
		snprintf(member, sizeof(member), "\n \"%s\": ", metric_table[i].id);
		assert_once(text, member);
		snprintf(member, sizeof(member), "\n \"%s\": ", metric_table[i].alias);
		if (*metric_table[i].alias)
			assert_once(text, member);
	}
	buf_release(&b);
	fx_free(fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prometheus), cmocka_unit_test(test_units),
		cmocka_unit_test(test_texts),	   cmocka_unit_test(test_client_wall),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests_name("metrics_outputs", tests, NULL, NULL);
}
