/* SPDX-License-Identifier: BSD-3-Clause */
/* test_emit.c - JSON and tables from hostile text and unknown values. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "collector/emit/emit_json.h"
#include "collector/emit/emit_table.h"

struct output {
	struct buf b;
	struct sink s;
	struct json j;
};

static void begin(struct output *o)
{
	memset(o, 0, sizeof(*o));
	o->s.out = &o->b;
	emit_init(&o->j, &o->s);
}

static json_t *parse(struct output *o)
{
	json_error_t error;
	json_t *root = json_loadb((const char *)o->b.data, o->b.len, JSON_ALLOW_NUL, &error);

	if (!root)
		fail_msg("%s in %.*s", error.text, (int)o->b.len, (const char *)o->b.data);
	return root;
}

static const char *text_of(struct output *o)
{
	assert_int_equal(buf_add(&o->b, "", 1), 0);
	return (const char *)o->b.data;
}

static void test_nested_values(void **state)
{
	struct output o;
	json_t *root;

	(void)state;
	begin(&o);
	emit_object(&o.j, NULL);
	emit_value(&o.j, "u", value_uint(UINT64_MAX));
	emit_value(&o.j, "i", value_int(-3));
	emit_value(&o.j, "d", value_real(0.1));
	emit_value(&o.j, "b", value_bool(true));
	emit_value(&o.j, "n", value_null());
	emit_value(&o.j, "nan", value_real((double)NAN));
	emit_array(&o.j, "a");
	emit_value(&o.j, NULL, value_uint(1));
	emit_object(&o.j, NULL);
	emit_end(&o.j);
	emit_array(&o.j, NULL);
	emit_end(&o.j);
	emit_end(&o.j);
	emit_end(&o.j);
	assert_int_equal(sink_end(&o.s), 0);
	assert_non_null(strstr(text_of(&o), "\"u\": 18446744073709551615"));
	assert_non_null(strstr((const char *)o.b.data, "\"d\": 0.1,"));
	o.b.len -= 1;
	/* jansson has no unsigned 64-bit integers */
	memcpy(strstr((char *)o.b.data, "18446744073709551615"), "                   1", 20);
	root = parse(&o);
	assert_int_equal(json_integer_value(json_object_get(root, "i")), -3);
	assert_true(json_real_value(json_object_get(root, "d")) == 0.1);
	assert_true(json_is_null(json_object_get(root, "n")));
	assert_true(json_is_null(json_object_get(root, "nan")));
	assert_int_equal(json_array_size(json_object_get(root, "a")), 3);
	json_decref(root);
	buf_release(&o.b);
}

static void test_hostile_text(void **state)
{
	static const char *const hostile[] = {
		"",
		"\"",
		"\\",
		"a\nb\tc\rd",
		"\x01\x1f\x7f",
		"</script>",
		"\xc3\xa4\xe2\x82\xac",
		"\xff\xfe",
		"\xc0\x80",
		"\xed\xa0\x80",
		"\xe0\x80\x80",
		"\xf0\x80\x80\x80",
		"\xf4\x90\x80\x80",
		"cut \xe2\x82",
		"{\"a\": [",
	};
	struct output o;
	json_t *root;
	char *big = malloc(4097);
	size_t i, n = sizeof(hostile) / sizeof(*hostile);

	(void)state;
	assert_non_null(big);
	memset(big, '"', 4096);
	big[4096] = '\0';
	begin(&o);
	emit_array(&o.j, NULL);
	for (i = 0; i < n; i++)
		emit_value(&o.j, NULL, value_text(hostile[i]));
	emit_value(&o.j, NULL, value_text(big));
	emit_text(&o.j, NULL, "a\0b", 3);
	emit_object(&o.j, NULL);
	emit_value(&o.j, "na\"me\n", value_uint(1));
	emit_end(&o.j);
	emit_end(&o.j);
	root = parse(&o);
	assert_int_equal(json_array_size(root), n + 3);
	for (i = 0; i < 7; i++) /* the valid ones are unchanged */
		assert_string_equal(json_string_value(json_array_get(root, i)), hostile[i]);
	assert_string_equal(json_string_value(json_array_get(root, 7)), "\xef\xbf\xbd\xef\xbf\xbd");
	assert_string_equal(json_string_value(json_array_get(root, n)), big);
	assert_int_equal(json_string_length(json_array_get(root, n + 1)), 3);
	assert_non_null(json_object_get(json_array_get(root, n + 2), "na\"me\n"));
	json_decref(root);
	buf_release(&o.b);
	free(big);
}

static void test_too_deep_is_an_error(void **state)
{
	struct output o;
	int i;

	(void)state;
	begin(&o);
	for (i = 0; i < JSON_DEPTH; i++)
		emit_array(&o.j, NULL);
	assert_int_equal(o.s.error, 0);
	emit_array(&o.j, NULL);
	assert_int_equal(sink_end(&o.s), -E2BIG);
	buf_release(&o.b);
}

static int count_flush(struct buf *out, void *arg)
{
	size_t *total = arg;

	*total += out->len;
	buf_clear(out);
	return 0;
}

static int bad_flush(struct buf *out, void *arg)
{
	(void)out;
	(*(int *)arg)++;
	return -EIO;
}

static void test_flush(void **state)
{
	struct output o;
	char block[1000];
	size_t total = 0, most = 0;
	int i, calls = 0;

	(void)state;
	memset(block, 'x', sizeof(block));
	begin(&o);
	o.s.flush = count_flush;
	o.s.arg = &total;
	for (i = 0; i < 5000; i++) {
		sink_put(&o.s, block, sizeof(block));
		most = o.b.len > most ? o.b.len : most;
	}
	assert_int_equal(sink_end(&o.s), 0);
	assert_int_equal(total, 5000 * sizeof(block));
	assert_true(most < SINK_CHUNK + sizeof(block));
	buf_release(&o.b);
	begin(&o);
	o.s.flush = bad_flush;
	o.s.arg = &calls;
	for (i = 0; i < 5000; i++)
		sink_put(&o.s, block, sizeof(block));
	assert_int_equal(sink_end(&o.s), -EIO);
	assert_int_equal(calls, 1);
	buf_release(&o.b);
}

static void check_human(struct value v, enum human as, const char *want)
{
	char out[HUMAN_BYTES];

	assert_string_equal(human(v, as, out), want);
}

static void test_human_units(void **state)
{
	(void)state;
	check_human(value_uint(400000), AS_COUNT, "400,000");
	check_human(value_uint(999), AS_COUNT, "999");
	check_human(value_int(-1234567), AS_COUNT, "-1,234,567");
	check_human(value_uint(0), AS_BYTES, "0 B");
	check_human(value_uint(999), AS_BYTES, "999 B");
	check_human(value_uint(999999), AS_BYTES, "1.000 MB");
	check_human(value_uint(55940000), AS_BYTES, "55.94 MB");
	check_human(value_uint(111421698), AS_BYTES, "111.4 MB");
	check_human(value_real(0), AS_SECONDS, "0 s");
	check_human(value_real(1.106), AS_SECONDS, "1.106 s");
	check_human(value_real(0.0231), AS_SECONDS, "23.10 ms");
	check_human(value_real(-0.5), AS_SECONDS, "-500.0 ms");
	check_human(value_real(125), AS_SECONDS, "2 m 05.0 s");
	check_human(value_real(7260), AS_SECONDS, "2 h 01 m");
	check_human(value_real(9999.4), AS_KHZ, "9999 kHz");
	check_human(value_real(244080), AS_KHZ, "244.1 MHz");
	check_human(value_real(9999.5), AS_MBS, "10.00 GB/s");
	check_human(value_real(9999.4), AS_IS, "9999");
	check_human(value_real(38830.7), AS_IS, "38,831");
	check_human(value_real(46.94), AS_PERCENT, "46.9 %");
	check_human(value_real(-0.04), AS_PERCENT, "0.0 %");
	check_human(value_real(-0.06), AS_PERCENT, "-0.1 %");
	check_human(value_real(-0.004), AS_TIMES, "0.00x");
	check_human(value_null(), AS_BYTES, "unknown");
	check_human(value_bool(false), AS_IS, "no");
	check_human(value_real(1e300), AS_COUNT, "1.000e+300");
}

static void test_table_fits_and_aligns(void **state)
{
	struct output o;
	struct grid g;
	const char *line, *end;
	char path[300];
	size_t lines = 0;

	(void)state;
	memset(path, 'p', sizeof(path));
	memcpy(path + sizeof(path) - 12, "/last.root", 11);
	begin(&o);
	grid_init(&g, &o.s, false);
	grid_columns(&g, "<file", ">read", "<note", NULL);
	grid_text(&g, path);
	grid_value(&g, value_uint(1000), AS_BYTES);
	grid_text(&g, "bell \a and\nline");
	grid_text(&g, "short");
	grid_value(&g, value_null(), AS_BYTES);
	grid_end_row(&g);
	grid_print(&g);
	for (line = text_of(&o); *line; line = end + 1, lines++) {
		end = strchr(line, '\n');
		assert_non_null(end);
		assert_true(end - line <= (ptrdiff_t)sink_columns(&o.s));
		assert_true(end > line && end[-1] != ' ');
	}
	assert_int_equal(lines, 3);
	assert_non_null(strstr((char *)o.b.data, "/last.root"));
	assert_non_null(strstr((char *)o.b.data, "bell ? and?line"));
	assert_non_null(strstr((char *)o.b.data, "unknown\n"));
	assert_null(strstr((char *)o.b.data, "\033"));
	buf_release(&o.b);
}

static void test_values(void **state)
{
	(void)state;
	assert_true(value_number(value_rest(value_real(-0.99), value_uint(100)), NULL) == 0);
	assert_true(value_number(value_rest(value_real(-1), value_uint(100)), NULL) == -1);
	assert_int_equal(value_rest(value_null(), value_uint(100)).type, VALUE_NULL);
	assert_int_equal(value_ratio(value_uint(1), value_uint(0), 1).type, VALUE_NULL);
	assert_int_equal(value_ratio(value_null(), value_uint(2), 1).type, VALUE_NULL);
	assert_int_equal(value_minus(value_uint(3), value_uint(5)).v.i, -2);
	assert_int_equal(value_minus(value_uint(3), value_null()).type, VALUE_NULL);
	assert_int_equal(value_plus(value_uint(3), value_uint(5)).type, VALUE_UINT);
	assert_int_equal(value_plus(value_int(-3), value_uint(5)).v.i, 2);
	assert_int_equal(value_plus(value_null(), value_uint(5)).type, VALUE_NULL);
}

static const char *real_text(struct output *o, double v)
{
	begin(o);
	sink_real(&o->s, v);
	assert_int_equal(sink_end(&o->s), 0);
	return text_of(o);
}

static void is_read_back(double v)
{
	struct output o;
	const char *text = real_text(&o, v);
	double again = strtod(text, NULL);

	if (again != v)
		fail_msg("%.17g is written as %s", v, text);
	buf_release(&o.b);
}

/* Nanoseconds as seconds are printed as a person would write them; every double is read back
 * exactly. */
static void test_real_numbers_are_read_back(void **state)
{
	static const struct {
		double v;
		const char *text;
	} cases[] = {
		{3728306 / 1e9, "0.003728306"},
		{0, "0"},
		{-0.5, "-0.5"},
		{1, "1"},
		{100, "100"},
		{-1 / 1e9, "-0.000000001"},
		{4194303999999999 / 1e9, "4194303.999999999"},
		{1.0 / 3, "0.3333333333333333"},
		{1795000001.4792216, "1795000001.4792216"},
		{1e15, "1000000000000000"},
		{5e-324, "4.94065645841247e-324"},
		{2.5e-10, "2.5e-10"},
		{-8.636319823961873e-06, "-8.636319823961873e-06"},
		{0x1p-19, "1.9073486328125e-06"},
		{1e-6 / 7, "1.4285714285714285e-07"},
		{1e-6 * 7 / 3, "2.333333333333333e-06"},
		{99999e-9 + 1e-13, "9.999900010000001e-05"},
		{9.9999999999999991e-05, "9.999999999999999e-05"},
	};
	uint64_t random = 88172645463325252u;
	struct output o;
	double v;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_string_equal(real_text(&o, cases[i].v), cases[i].text);
		buf_release(&o.b);
	}
	for (int i = 0; i < 200000; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		is_read_back((double)(random >> (11 + i % 50)) / 1e9);
		memcpy(&v, &random, sizeof(v));
		if (isfinite(v))
			is_read_back(v);
	}
}

static bool is_nanoseconds(double v)
{
	return fabs(v) < 4194304 && (double)(uint64_t)(fabs(v) * 1e9 + 0.5) / 1e9 == fabs(v);
}

/* The fewest of 15, 16 and 17 digits that are read back exactly, and all 17 for large numbers: as
 * C's library writes them. */
static void is_what_c_writes(double v)
{
	char text[40];
	struct output o;
	int places = fabs(v) < 4194304 ? 15 : 17;

	if (is_nanoseconds(v))
		return;
	do
		snprintf(text, sizeof(text), "%.*g", places++, v);
	while (strtod(text, NULL) != v);
	if (strcmp(real_text(&o, v), text) != 0)
		fail_msg("%.17g is written as %s, not %s", v, text_of(&o), text);
	buf_release(&o.b);
}

static void test_real_numbers_are_what_c_writes(void **state)
{
	uint64_t random = 88172645463325252u;
	double v;

	(void)state;
	for (int i = 0; i < 300000; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		v = ldexp(1 + (double)(random >> (12 + i % 3 * 20)) * 0x1p-52,
			  (int)(random % 76) - 20);
		is_what_c_writes(i % 2 ? v : -v);
		is_what_c_writes((double)(random >> 40) / (double)(1 + random % 997));
	}
	for (double ten = 1e-6; ten < 1e18; ten *= 10) {
		is_what_c_writes(nextafter(ten, 0));
		is_what_c_writes(nextafter(ten, 1e300));
	}
	for (double two = 0x1p-16; two < 0x1p56; two *= 2) {
		is_what_c_writes(nextafter(two, 0));
		is_what_c_writes(nextafter(two, 1e300));
	}
}

static void check_whole(uint64_t v)
{
	struct output o;
	char text[32];

	begin(&o);
	sink_uint(&o.s, v);
	assert_int_equal(sink_end(&o.s), 0);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	assert_string_equal(text_of(&o), text);
	buf_release(&o.b);
}

static void test_whole_numbers(void **state)
{
	uint64_t power = 1;

	(void)state;
	check_whole(0);
	check_whole(UINT64_MAX);
	for (int i = 0; i < 20; i++, power *= 10) {
		check_whole(power - 1);
		check_whole(power);
		check_whole(power / 9 * 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nested_values),
		cmocka_unit_test(test_real_numbers_are_read_back),
		cmocka_unit_test(test_whole_numbers),
		cmocka_unit_test(test_real_numbers_are_what_c_writes),
		cmocka_unit_test(test_hostile_text),
		cmocka_unit_test(test_too_deep_is_an_error),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_human_units),
		cmocka_unit_test(test_table_fits_and_aligns),
		cmocka_unit_test(test_values),
	};

	return cmocka_run_group_tests_name("emit", tests, NULL, NULL);
}
