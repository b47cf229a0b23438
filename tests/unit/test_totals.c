/* SPDX-License-Identifier: BSD-3-Clause */
/* test_totals.c - totals of finished runs: their contents, which runs have them, and until when. */
#include "own_dir.h"

#include <jansson.h>
#include <sys/stat.h>

#include "collector/model/footer.h"
#include "collector/print/render.h"
#include "collector/retain/totals.h"
#include "version.h"

#define NOW (UTC_NS(0) + UINT64_C(86400000000000))
#define CHUNK CREMA_TASK_CHUNK

static uint64_t files;

static struct fixture *journal_begin(struct buf *frames)
{
	struct fixture *fx = fx_new();

	fx->file = frames;
	fx->seq[1] = fx->seq[2] = 100 * files; /* none is a duplicate */
	fx_hello(fx, 1, NULL);
	fx_hello(fx, 2, NULL);
	return fx;
}

static void journal_end(struct fixture *fx)
{
	char journal[64];
	struct framefile f;

	snprintf(journal, sizeof(journal), "%s/journal", dir);
	mkdir(journal, 0700); /* a segment is a file in it */
	assert_int_equal(framefile_create(&f, journal, "journal", ++files, NULL), 0);
	assert_int_equal(framefile_append(&f, fx->file->data, fx->file->len), 0);
	framefile_close(&f);
	buf_release(fx->file);
	fx_free(fx);
}

static void chunk(struct fixture *fx, uint64_t attempt, const char *key, int start_ms,
		  const char *status, uint64_t events)
{
	struct task_record r = fx_record(attempt, key, "chunks", CHUNK, start_ms, start_ms + 1500);

	TASK_SET(&r, status, T(status));
	TASK_SET(&r, events, events);
	TASK_SET(&r, dataset, T("zmm"));
	SET_COUNT(&r, read_bytes, 1000 * attempt);
	fx_task(fx, 1, &r);
}

/* Tasks: chunks (one of four attempts failed), two without a chunk, one of which was killed. */
static void write_journal(void)
{
	struct buf frames = BUF_INIT;
	struct fixture *fx = journal_begin(&frames);
	char folder[64];

	chunk(fx, 1, "a", 1000, "ok", 100);
	chunk(fx, 2, "b", 1000, "erred", 0);
	chunk(fx, 3, "b", 3000, "ok", 250);
	chunk(fx, 4, "c", 4000, "ok", 7);
	fx_simple(fx, 2, 5, "d", "two", 0, 60000, 60500, "ok");
	fx_simple(fx, 2, 6, "e", "two", 0, 61000, 64000, "killed");
	fx_simple(fx, 2, 7, "f", "three", 0, 100000, 100250, "ok");
	journal_end(fx);
	snprintf(folder, sizeof(folder), "%s/" FOOTER_FOLDER, dir);
	assert_int_equal(mkdir(folder, 0700), 0);
}

static struct runs_source source_at(uint64_t now_ns)
{
	return (struct runs_source){.dir = dir, .now_ns = now_ns, .whole_bytes = 1 << 20};
}

static int update(uint64_t now_ns, uint64_t whole_bytes, uint64_t late_ns)
{
	struct runs_source source = source_at(now_ns);

	source.whole_bytes = whole_bytes;
	return totals_update(&source, late_ns);
}

struct told {
	char spans[128]; /* first spans of the runs with totals */
	void (*check)(const struct run *r);
};

static int see(void *arg, const struct run *r, size_t at, size_t n)
{
	struct told *told = arg;

	(void)at, (void)n;
	if (!r->totals)
		return 0;
	if (told->check)
		told->check(r);
	snprintf(told->spans + strlen(told->spans), sizeof(told->spans) - strlen(told->spans),
		 "%s ", r->first_span);
	return 0;
}

/* The runs whose totals are used. */
static void assert_told(const char *spans, void (*check)(const struct run *r))
{
	struct runs_source source = source_at(NOW);
	struct told told = {.check = check};
	struct runs runs = {0};
	struct model m;

	source.whole_bytes = 1;
	source.by_totals = true;
	model_init(&m);
	assert_true(runs_read_each(&m, &runs, &source, see, &told) >= 0);
	assert_string_equal(told.spans, spans);
	runs_release(&runs);
	model_release(&m);
}

static double metric(const struct run *r, const char *id)
{
	bool known;
	double v = value_number(dropped_value(r->totals, id), &known);

	if (!known)
		fail_msg("%s of %s is not known", id, r->first_span);
	return v;
}

/* From the records above, in milliseconds, by hand. */
static void check_run(const struct run *r)
{
	static const struct {
		const char *span;
		uint64_t attempts, chunks, begun, from_ms, to_ms;
		double wall, tasks, events;
	} due[] = {{"chunks", 4, 4, 4, 1000, 5500, 4.5, 3, 357},
		   {"two", 2, 0, 2, 60000, 64000, 4, 1, 0},
		   {"three", 1, 0, 1, 100000, 100250, 0.25, 1, 0}};
	const struct dropped_run *d = r->totals;
	size_t i = 0;

	while (strcmp(due[i].span, r->first_span))
		i++;
	assert_string_equal(d->id, r->id);
	assert_string_equal(d->by, CREMA_VERSION);
	assert_string_equal(d->why, "");
	assert_false(d->plain);
	assert_int_equal(d->spans.n, 1);
	assert_string_equal(d->spans.v[0], due[i].span);
	assert_int_equal(d->counts.n, 1);
	assert_string_equal(d->counts.v[0].span, due[i].span);
	assert_int_equal(d->counts.v[0].ended, due[i].attempts);
	assert_int_equal(run_counted(r), due[i].attempts);
	assert_int_equal(d->chunk_attempts, due[i].chunks);
	/* a double is only exact to a few hundred nanoseconds here */
	assert_in_range(d->start_ns, UTC_NS(due[i].from_ms) - 1000, UTC_NS(due[i].from_ms) + 1000);
	assert_in_range(d->stop_ns, UTC_NS(due[i].to_ms) - 1000, UTC_NS(due[i].to_ms) + 1000);
	assert_float_equal(metric(r, "wall_time"), due[i].wall, 1e-6);
	assert_float_equal(metric(r, "num_tasks"), due[i].tasks, 0);
	if (due[i].chunks)
		assert_float_equal(metric(r, "total_events"), due[i].events, 0);
}

static json_t *list(uint64_t whole_bytes)
{
	struct report_request req = {
		.dir = dir, .json = true, .list = true, .whole_bytes = whole_bytes};
	struct buf out = BUF_INIT;
	json_t *root;

	assert_int_equal(report_render(&req, &out), 0);
	root = json_loadb((const char *)out.data, out.len, 0, NULL);
	assert_non_null(root);
	buf_release(&out);
	return root;
}

/* The list from totals equals that from records. */
static void test_what_they_hold(void **state)
{
	json_t *by_records, *by_totals;

	(void)state;
	write_journal();
	assert_told("", NULL);
	by_records = list(0);
	assert_int_equal(json_array_size(json_object_get(by_records, "runs")), 3);
	assert_int_equal(update(NOW, 1 << 20, UINT64_MAX), 0);
	assert_told("chunks two three ", check_run);
	by_totals = list(1);
	assert_true(json_equal(by_records, by_totals));
	json_decref(by_records);
	json_decref(by_totals);
}

/* Not for a run that may continue: it must be idle for a minute, without a running task. */
static void test_only_of_runs_that_are_over(void **state)
{
	const uint64_t over = UTC_NS(100250) + UINT64_C(60000000000);
	struct buf frames = BUF_INIT;
	struct fixture *fx;

	(void)state;
	write_journal();
	fx = journal_begin(&frames);
	fx_simple(fx, 2, 20, "x", NULL, 0, 2000, 2500, "ok"); /* without a span */
	journal_end(fx);
	assert_int_equal(update(UTC_NS(60000), 1 << 20, UINT64_MAX), 0);
	assert_told("", NULL);
	assert_int_equal(update(over - 1000000, 1 << 20, UINT64_MAX), 0);
	assert_told("chunks two ", check_run);
	assert_int_equal(update(over + 1000000, 1 << 20, UINT64_MAX), 0);
	assert_told("chunks two three ", check_run);
}

/* From the first segment with records of it to the last. */
static void check_segments(const struct run *r)
{
	assert_int_equal(r->first_segment, 0);
	assert_int_equal(r->last_segment, !strcmp(r->first_span, "two") ? 1 : 0);
}

/* Totals of runs that have changed since are ignored until their records are read again. */
static void test_more_records(void **state)
{
	struct buf frames = BUF_INIT;
	struct fixture *fx;

	(void)state;
	write_journal();
	assert_int_equal(update(NOW, 1 << 20, UINT64_MAX), 0);
	fx = journal_begin(&frames);
	fx_simple(fx, 2, 8, "g", "two", 0, 62000, 62500, "ok");
	journal_end(fx);
	assert_told("chunks three ", check_run);
	assert_int_equal(update(NOW, 1 << 20, UINT64_MAX), 0);
	assert_told("chunks two three ", check_segments);
}

/* Replaces the file's totals with `d`, which the caller has changed. */
static void write_totals(struct dropped_run *d)
{
	struct buf frames = BUF_INIT;
	char folder[64];

	snprintf(folder, sizeof(folder), "%s/" FOOTER_FOLDER, dir);
	assert_int_equal(dropped_pack(d, CREMA_FRAME_RUN_TOTALS, &frames), 0);
	assert_int_equal(framefile_replace(folder, RUN_TOTALS_FILE, "totals", 0, &frames), 0);
	buf_release(&frames);
}

static char id_of_three[64];

static void keep_id(const struct run *r)
{
	if (!strcmp(r->first_span, "three"))
		snprintf(id_of_three, sizeof(id_of_three), "%s", r->id);
}

/* By another version, with other spans, or with more or fewer records. */
static void test_whose_are_believed(void **state)
{
	static const struct {
		const char *by, *state, *span;
		uint64_t begun, ended;
		size_t n;
		const char *told;
	} totals[] = {
		{CREMA_VERSION, "done", "three", 0, 1, 1, "three "},
		{CREMA_VERSION, NULL, "three", 0, 1, 1, ""},
		{CREMA_VERSION, "done", "two", 0, 1, 1, ""},
		{CREMA_VERSION, "done", "three", 1, 1, 1, ""},
		{CREMA_VERSION, "done", "three", 0, 2, 1, ""},
		{CREMA_VERSION, "done", "three", 0, 1, 0, ""},
		{CREMA_VERSION, "done", "three", 0, 1, 2, ""},
		{"0.0.1", "done", "three", 0, 1, 1, ""},
		{NULL, "done", "three", 0, 1, 1, ""},
	};

	(void)state;
	write_journal();
	assert_int_equal(update(NOW, 1 << 20, UINT64_MAX), 0);
	assert_told("chunks two three ", keep_id);
	for (size_t i = 0; i < sizeof(totals) / sizeof(*totals); i++) {
		struct span_count counts[2] = {{totals[i].span, totals[i].begun, totals[i].ended},
					       {totals[i].span, totals[i].begun, totals[i].ended}};
		struct dropped_run d = {.id = id_of_three,
					.kind = "dask",
					.why = "",
					.by = totals[i].by,
					.state = totals[i].state};

		d.counts.v = counts;
		d.counts.n = totals[i].n;
		write_totals(&d);
		assert_told(totals[i].told, NULL);
	}
}

/* There is only time for the first batch; `whole_bytes` determines how many runs it holds. */
static void test_as_many_as_there_is_time_for(void **state)
{
	static const struct {
		uint64_t whole_bytes;
		const char *told;
	} rooms[] = {{1, "chunks "},
		     {6 * 512 - 1, "chunks "},
		     {6 * 512, "chunks two "},
		     {7 * 512 - 1, "chunks two "},
		     {7 * 512, "chunks two three "}};
	char file[96];

	(void)state;
	write_journal();
	snprintf(file, sizeof(file), "%s/" FOOTER_FOLDER "/" RUN_TOTALS_FILE, dir);
	for (size_t i = 0; i < sizeof(rooms) / sizeof(*rooms); i++) {
		assert_int_equal(update(NOW, rooms[i].whole_bytes, 0), 0);
		assert_told(rooms[i].told, check_run);
		assert_int_equal(remove(file), 0);
	}
	assert_int_equal(update(NOW, 1, UINT64_MAX), 0); /* all, one at a time */
	assert_told("chunks two three ", check_run);
}

/* Dropping a run removes its totals from the others. */
static void test_one_is_taken(void **state)
{
	struct dropped_run *left[] = {NULL, NULL, NULL}, *taken;
	struct runs_source source = source_at(NOW);
	struct runs runs = {0};
	struct told told = {.check = NULL};
	struct model m;

	(void)state;
	write_journal();
	assert_int_equal(update(NOW, 1 << 20, UINT64_MAX), 0);
	model_init(&m);
	source.whole_bytes = 1;
	source.by_totals = true;
	assert_true(runs_read_each(&m, &runs, &source, see, &told) >= 0);
	assert_int_equal(m.totals.n, 3);
	memcpy(left, m.totals.v, sizeof(left));
	assert_null(run_totals_take(&m, NULL));
	assert_int_equal(m.totals.n, 3);
	taken = run_totals_take(&m, left[1]);
	assert_ptr_equal(taken, left[1]);
	assert_int_equal(m.totals.n, 2);
	assert_ptr_equal(m.totals.v[0], left[0]);
	assert_ptr_equal(m.totals.v[1], left[2]);
	free(taken->spans.v);
	free(taken->values.v);
	free(taken->counts.v);
	runs_release(&runs);
	model_release(&m);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_dir, remove_dir)
	const struct CMUnitTest tests[] = {
		TEST(test_what_they_hold),     TEST(test_only_of_runs_that_are_over),
		TEST(test_more_records),       TEST(test_one_is_taken),
		TEST(test_whose_are_believed), TEST(test_as_many_as_there_is_time_for),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
