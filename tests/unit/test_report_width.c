/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_report_width.c - the terminal's report is never wider than 80 columns and contains only
 * text, line ends and, in colour, colours: whatever the names, however large the numbers.
 */
#include <locale.h>
#include <unistd.h>
#include <wchar.h>

#include "own_dir.h"

#include "collector/print/render.h"

/* Wide characters, combining marks, both kinds of control characters, right-to-left text, invalid
 * UTF-8, HTML. */
#define WIDE "\xe4\xb8\xad\xe6\x96\x87\xf0\x9f\x98\x80"
#define JOINED "e\xcc\x81"
#define CONTROLS                                                                                   \
	"\033[2J\r\x08\x7f\xc2\x9b"                                                                \
	"31m\n"
#define TURNED "\xe2\x80\xae\xe2\x80\xa8\xe2\x81\xa6"
#define BROKEN "\xff\xc3"
#define HTML "<b>'\"&"
#define HOSTILE WIDE JOINED CONTROLS TURNED BROKEN HTML

static const char *names[] = {HOSTILE, "x", NULL /* 4 kB */, NULL /* 4 kB, wide */};
static char big[4097], big_wide[4097];

static void fill_names(void)
{
	size_t i;

	memset(big, 'k', sizeof(big) - 1);
	for (i = 0; i + 3 < sizeof(big_wide); i += 3)
		memcpy(big_wide + i, "\xe4\xb8\xad", 3);
	names[2] = big;
	names[3] = big_wide;
}

static void feed_text_map(struct fixture *fx, uint64_t type, const char *const *pairs,
			  const char *const *numbers)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;
	size_t n = 0, i;

	for (i = 0; pairs[i]; i += 2)
		n++;
	for (i = 0; numbers[i]; i++)
		n++;
	fx_begin(&pk, &b, type, n);
	for (i = 0; pairs[i]; i += 2)
		pack_kv_text(&pk, pairs[i], pairs[i + 1]);
	for (i = 0; numbers[i]; i++)
		pack_kv_u64(&pk, numbers[i], UINT64_MAX / 3);
	fx_end(fx, 1, &b);
}

static void feed_tables(struct fixture *fx, const char *name)
{
	static const char *const file[] = {
		"size_bytes",	      "read_calls",	 "read_bytes",	    "mapped_bytes",
		"storage_read_bytes", "storage_wait_ns", "basket_bytes",    "basket_raw_bytes",
		"large_read_bytes",   "cached_bytes",	 "readahead_bytes", "requests",
		"network_read_bytes", "latency_sum_ns",	 "latency_max_ns",  NULL};
	static const char *const codec[] = {"calls",  "in_bytes", "out_bytes",
					    "cpu_ns", "wall_ns",  NULL};
	static const char *const server[] = {"requests",       "failed",	 "read_bytes",
					     "latency_sum_ns", "latency_max_ns", NULL};
	const char *const files[] = {"path", name,	"span", "s", "kind",
				     "data", "storage", name,	NULL};
	const char *const codecs[] = {"function",   name,   "codec", name, "direction",
				      "decompress", "span", "s",     NULL};
	const char *const servers[] = {"server", name, "scheme", "root", "span", "s", NULL};

	feed_text_map(fx, CREMA_MSG_FILE, files, file);
	feed_text_map(fx, CREMA_MSG_CODEC, codecs, codec);
	feed_text_map(fx, CREMA_MSG_SERVER, servers, server);
}

/* All counters at their maximum; a chunk with `name` in every text. */
static void feed_chunk(struct fixture *fx, uint64_t number, const char *name, bool erred)
{
	struct task_record r = fx_record(number, name, "s", CREMA_TASK_CHUNK, 0, 2000000000);
	int i;

	for (i = 0; i < CREMA_COUNTS; i++) {
		r.count[i] = UINT64_MAX / 5;
		r.count_known |= UINT64_C(1) << i;
	}
	r.count[CREMA_C_mapped_bytes] = 0;
	for (i = 0; i < CREMA_TIMES; i++) {
		r.own[i] = r.pool[i] = UINT64_MAX / 9;
		r.own_known |= 1u << i;
		r.pool_known |= 1u << i;
	}
	TASK_SET(&r, prefix, T(name));
	TASK_SET(&r, dataset, T(name));
	TASK_SET(&r, filename, T(name));
	TASK_SET(&r, columns, T(name));
	TASK_SET(&r, entrystart, INT64_MIN / 2);
	TASK_SET(&r, entrystop, INT64_MAX / 2);
	TASK_SET(&r, events, INT64_MAX / 8);
	TASK_SET(&r, coffea_bytesread, UINT64_MAX / 7);
	TASK_SET(&r, coffea_processtime, 1e300);
	TASK_SET(&r, rss_start_bytes, 0);
	TASK_SET(&r, rss_stop_bytes, INT64_MAX);
	if (erred)
		TASK_SET(&r, status, T("erred"));
	fx_task(fx, 1, &r);
}

static int write_run(void **state)
{
	struct fixture *fx = fx_new();
	struct buf frames = BUF_INIT;
	uint64_t number = 0;
	size_t i;

	fill_names();
	assert_int_equal(make_dir(state), 0);
	fx->file = &frames;
	fx_hello(fx, 1,
		 "{\"worker_address\": \"tcp://\\u4e2d\\u001b[2J\\u202e\\u061c"
		 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		 "aaa\", "
		 "\"nthreads\": 1000000000000, \"memory_limit_bytes\": 1, "
		 "\"python\": \"\\u001b[2J3.11.999999999999999999999999999999999999999999\", "
		 "\"distributed\": \"\\u009b2026.99999999999999999999999999999999999999\", "
		 "\"coffea\": \"\\u4e2d\\u4e2d\\u4e2d\\u4e2d\\u4e2d\\u4e2d\\u4e2d\\u4e2d\", "
		 "\"uproot\": \"5.99999999999999999999999999999999999999999999999999\"}");
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		feed_chunk(fx, ++number, names[i], true);
		feed_chunk(fx, ++number, names[i], false);
		feed_tables(fx, names[i]);
	}
	fx_dask(fx, 1, 3000,
		"{\"executing\": 1e18, \"nthreads\": 1e18, \"spilled_bytes\": 1e18, "
		"\"digests\": [[\"execute\", \"s\", \"x\", \"thread-cpu\", "
		"\"seconds\", 1e300]]}");
	fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(2000), "rss_bytes", UINT64_MAX, "cpu_percent",
	       UINT64_MAX, NULL);
	write_frames(1, &frames);
	buf_release(&frames);
	fx_free(fx);
	return 0;
}

static char *render(struct report_request req, struct buf *out)
{
	memset(out, 0, sizeof(*out));
	req.dir = dir;
	assert_int_equal(report_render(&req, out), 0);
	assert_int_equal(buf_add(out, "", 1), 0);
	return (char *)out->data;
}

/* libc measures each line; colours are excluded. */
static void check_lines(const char *text)
{
	wchar_t wide[1024];
	char line[2048];
	const char *end;
	size_t n;

	for (; *text; text = end + 1) {
		end = strchr(text, '\n');
		assert_non_null(end);
		n = (size_t)(end - text);
		if (n >= sizeof(line))
			fail_msg("%zu bytes: %.100s", n, text);
		memcpy(line, text, n);
		line[n] = '\0';
		n = mbstowcs(wide, line, 1024);
		if (n == (size_t)-1)
			fail_msg("no UTF-8: %s", line);
		if (wcswidth(wide, n) < 0)
			fail_msg("a control character: %s", line);
		if (wcswidth(wide, n) > 80)
			fail_msg("%d columns: %s", wcswidth(wide, n), line);
		if (wcschr(wide, 0x061c) || wcschr(wide, 0x202e) || wcschr(wide, 0x2066) ||
		    wcschr(wide, 0x2028))
			fail_msg("turned writing: %s", line);
	}
}

static void test_narrow_and_clean(void **state)
{
	struct report_request reports[] = {
		{.run = NULL},
		{.tables = REPORT_ALL_TABLES},
		{.all_metrics = true},
		{.list = true},
	};
	struct buf out;
	size_t i;

	(void)state;
	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
	for (i = 0; i < sizeof(reports) / sizeof(*reports); i++) {
		check_lines(render(reports[i], &out));
		buf_release(&out);
	}
	setlocale(LC_CTYPE, "C");
}

static void test_row_119(void **state)
{
	static const char *const titles[] = {
		"Findings",
		"Throughput",
		"Events",
		"Phases",
		"Efficiency",
		"Data volume by layer",
		"Resources",
		"Timing: where the time of counted tasks went",
		"Fine metrics",
		"Chunks",
		"Datasets",
		"Task prefixes",
		"Slowest tasks",
		"Codecs: decompression of all attempts",
		"Workers",
		"Wasted work",
		"Data files of all attempts, most read first",
	};
	struct report_request req = {.tables = REPORT_ALL_TABLES};
	char line[80];
	struct buf out;
	size_t i;
	char *text;

	(void)state;
	text = render(req, &out);
	for (i = 0; i < sizeof(titles) / sizeof(*titles); i++) {
		snprintf(line, sizeof(line), "\n\n%s\n", titles[i]);
		if (!strstr(text, line))
			fail_msg("no section '%s'", titles[i]);
	}
	/* findings come first */
	assert_true(strstr(text, "\nFindings\n") < strstr(text, "\nThroughput\n"));
	buf_release(&out);
}

/* One screen, whatever the run: what it was, how fast, why, what to change, where to find more. */
static void test_first_screen(void **state)
{
	static const char *const parts[] = {"\n\nHow fast\n",	    "\n\nWhat held it back",
					    "\n\nWhat to change\n", "\n\nBytes\n",
					    "\nCompleteness: ",	    "\nmore: crema report --full"};
	unsigned int widths[] = {0, 40, 80, 160, 1000};
	struct report_request req = {.usual_dir = true};
	size_t i, k, lines;
	struct buf out;
	char *text;

	(void)state;
	for (i = 0; i < sizeof(widths) / sizeof(*widths); i++) {
		req.width = widths[i];
		text = render(req, &out);
		for (k = 0, lines = 0; text[k]; k++)
			lines += text[k] == '\n';
		if (widths[i] != 40 && lines > 30)
			fail_msg("%zu lines:\n%s", lines, text);
		for (k = 0; k < sizeof(parts) / sizeof(*parts); k++) {
			if (!strstr(text, parts[k]))
				fail_msg("no '%s' in\n%s", parts[k], text);
		}
		buf_release(&out);
	}
}

/* The completeness line of a run with one task, whose agent reported what it refused if `totals`;
 * others: the last message of another worker of the run came this much later. */
static void completeness(bool totals, uint64_t refused, int later_ms, char *line, size_t size)
{
	struct report_request req = {.usual_dir = true};
	char own[] = "/tmp/crema-test-XXXXXX";
	struct fixture *fx = fx_new();
	struct buf frames = BUF_INIT, out = BUF_INIT;
	struct framefile f;
	const char *at;

	req.dir = mkdtemp(own);
	assert_non_null(req.dir);
	fx->file = &frames;
	fx_hello(fx, 1, "{}");
	fx_simple(fx, 1, 1, "x-1", "s", 0, 0, 1000, "ok");
	if (totals)
		fx_map(fx, 1, CREMA_MSG_TOTALS, "boot_ns", AT(1000), "records_refused", refused,
		       "tasks_refused", UINT64_C(0), NULL);
	if (later_ms) {
		fx_hello(fx, 2, "{}");
		fx_simple(fx, 2, 1, "x-2", "s", 0, 0, 1000 + later_ms, "ok");
		fx_map(fx, 2, CREMA_MSG_TOTALS, "boot_ns", AT(1000 + later_ms), "records_refused",
		       UINT64_C(0), "tasks_refused", UINT64_C(0), NULL);
	}
	assert_int_equal(framefile_create(&f, own, "spool", 1, NULL), 0);
	assert_int_equal(framefile_append(&f, frames.data, frames.len), 0);
	framefile_close(&f);
	assert_int_equal(report_render(&req, &out), 0);
	assert_int_equal(buf_add(&out, "", 1), 0);
	at = strstr((char *)out.data, "\nCompleteness: ");
	assert_non_null(at);
	snprintf(line, size, "%.*s", (int)strcspn(at + 1, "\n;"), at + 1);
	buf_release(&out);
	buf_release(&frames);
	fx_free(fx);
	assert_int_equal(fx_remove(own), 0);
}

static void test_what_nobody_told_is_unknown(void **state)
{
	char line[200];

	(void)state;
	completeness(false, 0, 0, line, sizeof(line));
	assert_string_equal(line, "Completeness: unknown whether workers dropped records or tasks");
	completeness(true, 0, 0, line, sizeof(line));
	assert_string_equal(line, "Completeness: no record lost");
	completeness(true, 3, 0, line, sizeof(line));
	assert_string_equal(line, "Completeness: 3 records refused");
}

/* The last totals of a worker that became silent are valid until then. */
static void test_what_silent_workers_did_is_unknown(void **state)
{
	char line[200];

	(void)state;
	completeness(true, 0, 9000, line, sizeof(line));
	assert_string_equal(line, "Completeness: no record lost");
	completeness(true, 0, 20000, line, sizeof(line));
	assert_string_equal(line, "Completeness: no record lost until 08:00:01 UTC, then unknown");
	completeness(true, 3, 20000, line, sizeof(line));
	assert_string_equal(line, "Completeness: at least 3 records refused");
	completeness(false, 0, 20000, line, sizeof(line));
	assert_string_equal(line, "Completeness: unknown whether workers dropped records or tasks");
}

/* --show prints what it names, --full everything. */
static void test_tables_by_name(void **state)
{
	struct report_request req = {.usual_dir = true};
	char why[REPORT_LINE_BYTES] = "", both[64];
	struct buf out;
	size_t i;
	char *text;

	(void)state;
	req.tables = report_tables_named("files,timing", why, sizeof(why));
	assert_int_equal(req.tables, 1ull << REPORT_TABLE_files | 1ull << REPORT_TABLE_timing);
	text = render(req, &out);
	assert_non_null(strstr(text, "\nTiming: "));
	assert_non_null(strstr(text, "\nData files "));
	assert_null(strstr(text, "\nThroughput\n"));
	buf_release(&out);
	assert_int_equal(report_tables_named("all", why, sizeof(why)), REPORT_ALL_TABLES);
	for (i = 0; i < REPORT_TABLES; i++)
		assert_int_equal(report_tables_named(report_table_names[i].name, why, sizeof(why)),
				 1ull << i);
	assert_string_equal(why, "");
	assert_int_equal(report_tables_named("files,nosuch", why, sizeof(why)), 0);
	assert_non_null(strstr(why, "'nosuch'"));
	for (i = 0; i < REPORT_TABLES; i++) {
		snprintf(both, sizeof(both), ", %s", report_table_names[i].name);
		assert_non_null(strstr(why, both));
	}
	assert_int_equal(report_tables_named("", why, sizeof(why)), 0);
}

/* In colour the text is the same; the only escapes are colours, and each line of a table ends
 * without colour. */
static void test_colour_is_only_colour(void **state)
{
	struct report_request plain = {.tables = REPORT_ALL_TABLES}, bright = plain;
	struct buf a, b;
	const char *p, *q;
	size_t escapes = 0;

	(void)state;
	bright.colour = true;
	p = render(plain, &a);
	q = render(bright, &b);
	assert_null(strchr(p, '\033'));
	for (; *q; q++) {
		if (*q == '\033') {
			assert_int_equal(*++q, '[');
			for (q++; *q != 'm'; q++)
				assert_true(*q == ';' || (*q >= '0' && *q <= '9'));
			escapes++;
		} else {
			assert_int_equal(*q, *p++);
		}
	}
	assert_int_equal(*p, '\0');
	assert_true(escapes > 40);
	buf_release(&a);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_narrow_and_clean),
		cmocka_unit_test(test_row_119),
		cmocka_unit_test(test_first_screen),
		cmocka_unit_test(test_tables_by_name),
		cmocka_unit_test(test_colour_is_only_colour),
		cmocka_unit_test(test_what_nobody_told_is_unknown),
		cmocka_unit_test(test_what_silent_workers_did_is_unknown),
	};

	return cmocka_run_group_tests_name("report_width", tests, write_run, remove_dir);
}
