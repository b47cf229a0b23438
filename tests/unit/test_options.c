/* SPDX-License-Identifier: BSD-3-Clause */
/* test_options.c - command lines and environment. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/log.h"
#include "common/options.h"
#include "common/units.h"

static int parse(struct options *o, unsigned scope, const char *a, const char *b, const char *c)
{
	char *argv[] = {(char *)(uintptr_t) "cmd", (char *)(uintptr_t)a, (char *)(uintptr_t)b,
			(char *)(uintptr_t)c, NULL};
	int argc = 1;

	while (argv[argc])
		argc++;
	return options_parse(o, scope, argc, argv);
}

static void test_values(void **state)
{
	struct options o;

	(void)state;
	unsetenv("CREMA_DIR");
	assert_int_equal(parse(&o, SCOPE_COLLECT, NULL, NULL, NULL), 0);
	assert_null(o.value[OPT_dir]);
	assert_string_equal(options_get(&o, OPT_listen), "0.0.0.0:8990");
	assert_false(options_on(&o, OPT_insecure));
	assert_int_equal(parse(&o, SCOPE_COLLECT, "--listen", ":1", "--insecure"), 0);
	assert_string_equal(options_get(&o, OPT_listen), ":1");
	assert_true(options_on(&o, OPT_insecure));
	assert_int_equal(parse(&o, SCOPE_COLLECT, "--dir=/a=b", NULL, NULL), 0);
	assert_string_equal(o.value[OPT_dir], "/a=b");
	setenv("CREMA_DIR", "/env", 1);
	assert_int_equal(parse(&o, SCOPE_COLLECT, NULL, NULL, NULL), 0);
	assert_string_equal(o.value[OPT_dir], "/env");
	assert_int_equal(parse(&o, SCOPE_COLLECT, "--dir", "/flag", NULL), 0);
	assert_string_equal(o.value[OPT_dir], "/flag");
	setenv("CREMA_DIR", "", 1);
	assert_int_equal(parse(&o, SCOPE_COLLECT, NULL, NULL, NULL), 0);
	assert_null(o.value[OPT_dir]);
}

static void test_repeated(void **state)
{
	struct options o;

	(void)state;
	setenv("CREMA_DIR", "/env", 1);
	assert_int_equal(parse(&o, SCOPE_REPORT, "--dir=/a", "--dir=/b", "--dir=/c"), 0);
	assert_string_equal(o.value[OPT_dir], "/a");
	assert_string_equal(o.more[0], "/b");
	assert_string_equal(o.more[1], "/c");
	assert_null(o.more[2]);
	assert_int_equal(parse(&o, SCOPE_REPORT, "--dir", "/a", NULL), 0);
	assert_string_equal(o.value[OPT_dir], "/a");
	assert_null(o.more[0]);
	/* if only one is allowed: the last */
	assert_int_equal(parse(&o, SCOPE_COLLECT, "--dir=/a", "--dir=/b", NULL), 0);
	assert_string_equal(o.value[OPT_dir], "/b");
	assert_null(o.more[0]);
	unsetenv("CREMA_DIR");
}

static void test_rest(void **state)
{
	struct options o;

	(void)state;
	assert_int_equal(parse(&o, SCOPE_RUN, "--", "-x", NULL), 0);
	assert_int_equal(o.rest, 2);
	assert_int_equal(parse(&o, SCOPE_RUN, "python", "--unknown", NULL), 0);
	assert_int_equal(o.rest, 1);
	assert_int_equal(parse(&o, SCOPE_REPORT, "--json", "-", NULL), 0);
	assert_string_equal(o.value[OPT_json], "-");
	assert_int_equal(o.rest, 3);
	assert_int_equal(parse(&o, SCOPE_REPORT, "-", NULL, NULL), 0);
	assert_int_equal(o.rest, 1);
	assert_int_equal(parse(&o, SCOPE_REPORT, "-h", NULL, NULL), 0);
	assert_true(options_on(&o, OPT_help));
}

/* An error is reported in one line, which names its cause. */
static void wrong_in(unsigned scope, const char *a, const char *b, const char *expected)
{
	struct options o;
	char text[512];
	int p[2];
	ssize_t n;

	assert_int_equal(pipe(p), 0);
	log_to(p[1]);
	assert_int_equal(parse(&o, scope, a, b, NULL), -EINVAL);
	log_to(2);
	close(p[1]);
	n = read(p[0], text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = '\0';
	close(p[0]);
	assert_ptr_equal(strchr(text, '\n'), text + n - 1);
	assert_non_null(strstr(text, expected));
	assert_memory_equal(text, "crema: ", 7);
}

static void wrong(const char *a, const char *b, const char *expected)
{
	wrong_in(SCOPE_REPORT, a, b, expected);
}

static void test_errors(void **state)
{
	(void)state;
	wrong("--nonsense", NULL, "--nonsense");
	wrong("--listen", ":1", "--listen");
	wrong("--coffea-report", NULL, "FILE");
	wrong("--list=yes", NULL, "no value");
	wrong("--li\nst", NULL, "--li?st");
}

static void test_switches(void **state)
{
	static const char *const on[] = {"on", "yes", "true", "1"}, *const off[] = {"off", "no",
										    "false", "0",
										    ""};
	static const char *const neither[] = {"ON", "2", "onn", "o", " on", "banana"};
	struct options o;

	(void)state;
	for (size_t i = 0; i < sizeof(on) / sizeof(on[0]); i++) {
		setenv("CREMA_REDACT_KEYS", on[i], 1);
		assert_int_equal(parse(&o, SCOPE_COLLECT, "--io-uring", on[i], NULL), 0);
		assert_true(options_on(&o, OPT_redact_keys));
		assert_true(options_on(&o, OPT_io_uring));
		assert_string_equal(o.value[OPT_redact_keys], "on");
	}
	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
		setenv("CREMA_REDACT_KEYS", off[i], 1);
		assert_int_equal(
			parse(&o, SCOPE_COLLECT, "--io-uring", *off[i] ? off[i] : "off", NULL), 0);
		assert_false(options_on(&o, OPT_redact_keys));
		assert_false(options_on(&o, OPT_io_uring));
	}
	unsetenv("CREMA_REDACT_KEYS");
	assert_int_equal(parse(&o, SCOPE_COLLECT, NULL, NULL, NULL), 0);
	assert_true(options_on(&o, OPT_io_uring)); /* the default */
	for (size_t i = 0; i < sizeof(neither) / sizeof(neither[0]); i++) {
		wrong_in(SCOPE_COLLECT, "--io-uring", neither[i], "--io-uring: '");
		setenv("CREMA_REDACT_KEYS", neither[i], 1);
		wrong_in(SCOPE_COLLECT, NULL, NULL, "CREMA_REDACT_KEYS: '");
		unsetenv("CREMA_REDACT_KEYS");
	}
	wrong_in(SCOPE_COLLECT, "--io-uring=banana", NULL, "'banana' is neither on nor off");
	/* Variables that only workers read have a separate check, for crema run and the agent. */
	assert_int_equal(options_check_environment(SCOPE_WORKER), 0);
	setenv("CREMA", "disabled", 1);
	assert_int_equal(parse(&o, SCOPE_RUN, NULL, NULL, NULL), 0);
	assert_int_equal(options_check_environment(SCOPE_WORKER), -EINVAL);
	unsetenv("CREMA");
}

static void test_help(void **state)
{
	char *text = NULL;
	const char *line;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	(void)state;
	options_help(f, SCOPE_COLLECT, "usage: crema collect\n", 70, false);
	fclose(f);
	assert_null(strstr(text, "--read-whole"));
	assert_non_null(strstr(text, "--help-all"));
	for (line = text; *line; line += strcspn(line, "\n") + 1)
		assert_true(strcspn(line, "\n") < 70 || !memchr(line + 26, ' ', 44));
	free(text);
	f = open_memstream(&text, &n);
	options_help(f, SCOPE_COLLECT, "usage: crema collect\n", 0, true);
	fclose(f);
	assert_non_null(strstr(text, "--read-whole BYTES"));
	assert_non_null(strstr(text, "(default: 0.0.0.0:8990)"));
	assert_memory_equal(text, "usage: crema collect\n", 21);
	assert_non_null(strstr(text, "--listen ADDR:PORT"));
	assert_non_null(strstr(text, "CREMA_TOKEN_FILE"));
	assert_null(strstr(text, "--json"));
	free(text);
}

/* Options may follow words and stand between them; for `crema run` the first word ends them. */
static void test_words_and_options(void **state)
{
	char program[] = "compare", a[] = "a", b[] = "b", json[] = "--json", dash[] = "-",
	     end[] = "--", c[] = "--c";
	char *mixed[] = {program, a, json, dash, b, NULL};
	char *ended[] = {program, a, json, dash, end, b, c, NULL};
	char *run[] = {program, a, json, NULL};
	struct options o;

	(void)state;
	assert_int_equal(options_parse(&o, SCOPE_COMPARE, 5, mixed), 0);
	assert_string_equal(o.value[OPT_json], "-");
	assert_int_equal(o.rest, 3);
	assert_ptr_equal(mixed[3], a);
	assert_ptr_equal(mixed[4], b);
	assert_int_equal(options_parse(&o, SCOPE_COMPARE, 7, ended), 0);
	assert_int_equal(o.rest, 4);
	assert_ptr_equal(ended[4], a);
	assert_ptr_equal(ended[5], b);
	assert_ptr_equal(ended[6], c);
	assert_int_equal(options_parse(&o, SCOPE_RUN, 3, run), 0);
	assert_int_equal(o.rest, 1);
	assert_ptr_equal(run[2], json);
}

static void test_left_out(void **state)
{
	char json[] = "--json", name[] = "out.json", dash[] = "-", list[] = "--list", empty[] = "",
	     program[] = "report";
	struct options o;

	(void)state;
	assert_int_equal(options_parse(&o, SCOPE_REPORT, 2, (char *[]){program, json, NULL}), 0);
	assert_ptr_equal(o.value[OPT_json], options_left_out);
	assert_int_equal(options_parse(&o, SCOPE_REPORT, 3, (char *[]){program, json, list, NULL}),
			 0);
	assert_ptr_equal(o.value[OPT_json], options_left_out);
	assert_string_equal(o.value[OPT_list], "on");
	assert_int_equal(options_parse(&o, SCOPE_REPORT, 3, (char *[]){program, json, name, NULL}),
			 0);
	assert_string_equal(o.value[OPT_json], "out.json");
	assert_int_equal(options_parse(&o, SCOPE_REPORT, 3, (char *[]){program, json, dash, NULL}),
			 0);
	assert_string_equal(o.value[OPT_json], "-");
	assert_int_equal(options_parse(&o, SCOPE_REPORT, 3, (char *[]){program, json, empty, NULL}),
			 0);
	assert_ptr_not_equal(o.value[OPT_json], options_left_out);
}

static void test_nearest(void **state)
{
	static const char *const words[] = {"report", "run", "compare", "--json", "--sqlite", NULL};
	static const struct {
		const char *text, *near;
	} cases[] = {{"reprot", "report"},  {"rn", "run"},    {"--jsno", "--json"},
		     {"comp", "compare"},   {"xyz", NULL},    {"", NULL},
		     {"--sql", "--sqlite"}, {"collect", NULL}};
	const char *near;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		near = options_nearest(cases[i].text, strlen(cases[i].text), words);
		if (!cases[i].near)
			assert_null(near);
		else
			assert_string_equal(near ? near : "none", cases[i].near);
	}
}

static void test_units(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} amounts[] = {
		{"0", 0},	   {"17", 17},		{"20G", 20000000000}, {"1.5MB", 1500000},
		{"3k", 3000},	   {"3K", 3000},	{"2Ki", 2048},	      {"5MiB", 5u << 20},
		{"1Gi", 1u << 30}, {"2Ti", 2ull << 40}, {"4T", 4000000000000}};
	static const struct {
		const char *text;
		uint64_t seconds;
	} times[] = {{"7s", 7},	       {"3m", 180},    {"2h", 7200},
		     {"14d", 1209600}, {"1w", 604800}, {"0.5h", 1800}};
	static const char *const bad[] = {"",	"G",	 "5X",	     "1e3", "0x10",
					  "-1", "1.2.3", "9999999T", "5 k", "inf"};
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof(amounts) / sizeof(amounts[0]); i++) {
		assert_int_equal(units_bytes(amounts[i].text, &value), 0);
		assert_int_equal(value, amounts[i].bytes);
	}
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		assert_int_equal(units_time(times[i].text, &value), 0);
		assert_int_equal(value, times[i].seconds * 1000000000u);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(units_bytes(bad[i], &value), -EINVAL);
		assert_int_equal(units_time(bad[i], &value), -EINVAL);
	}
	assert_int_equal(units_time("5", &value), -EINVAL);
	assert_int_equal(units_time("501y", &value), -EINVAL);
	assert_int_equal(units_time("999999w", &value), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_rest),
		cmocka_unit_test(test_repeated),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_switches),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_words_and_options),
		cmocka_unit_test(test_left_out),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_units),
	};

	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
