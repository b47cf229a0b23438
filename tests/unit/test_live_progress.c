/* SPDX-License-Identifier: BSD-3-Clause */
/* test_live_progress.c - estimated ends against exactly known ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "collector/live/live_parts.h"
#include "collector/web/http_metrics.h"

#define CHUNKS 120
#define START_MS 1000000 /* of the first chunk */
#define NS_OF_MS UINT64_C(1000000)

static struct live_worker *add(struct live *live, uint8_t first)
{
	uint8_t id[CREMA_WORKER_ID_BYTES] = {first};
	struct live_worker *w;
	bool folded;

	w = live_worker(live, id, &folded);
	assert_non_null(w);
	live_connection(live, id, 1);
	return w;
}

static const char *scheduler = "Scheduler-1";

/* What the scheduler reports at that time; the numbers are one second old. */
static void tell(struct live *live, struct live_worker *w, int64_t now_ms, double ended,
		 double last_ms)
{
	double age = 1, now = (double)now_ms;
	json_t *rows = json_pack("[[s,f,f,f,o],[s,i,i,f,n]]", "fill", CHUNKS - ended, ended,
				 (now - START_MS) / 1e3 - age,
				 ended > 0 ? json_real((now - last_ms) / 1e3 - age) : json_null(),
				 "merge", 10, 0, (now - START_MS) / 1e3 - age);
	json_t *told = json_pack("{s:s,s:f,s:i,s:o}", "id", scheduler, "age", age - 0.25, "clients",
				 1, "prefixes", rows);

	assert_non_null(told);
	w->probe_boot_ns = (uint64_t)now_ms * NS_OF_MS - 250 * NS_OF_MS;
	w->last_boot_ns = (uint64_t)now_ms * NS_OF_MS;
	w->heard_ms = now_ms;
	live_progress_feed(live, w, told);
	json_decref(told);
}

/* Workers of one thread; those from `first` on begin at late_ms, after arriving earlier to import.
 * Ends of chunks, in order. */
struct job {
	double chunk_ms, late_ms, imports_ms;
	int workers, first;
};

static int ended_until(const struct job *job, double ms, double *last)
{
	int done = 0, i, n;

	*last = 0;
	for (i = 0; i < job->workers; i++) {
		double begin = i < job->first ? 0 : job->late_ms;

		n = ms > begin ? (int)((ms - begin) / job->chunk_ms) : 0;
		done += n;
		if (n)
			*last = fmax(*last, begin + n * job->chunk_ms);
	}
	return done < CHUNKS ? done : CHUNKS;
}

static double end_of(const struct job *job)
{
	double ms = 0, last;

	while (ended_until(job, ms, &last) < CHUNKS)
		ms += 1;
	return ms;
}

static void started(struct live_worker *w, bool any)
{
	w->row.known[LIVE_tasks_started / 64] |= UINT64_C(1) << (LIVE_tasks_started % 64);
	w->row.value[LIVE_tasks_started] = any;
}

static void estimates(void **state)
{
	static const struct job jobs[] = {
		{.chunk_ms = 1000, .workers = 1, .first = 1},
		{.chunk_ms = 1000, .workers = 4, .first = 4},
		{.chunk_ms = 7000, .workers = 3, .first = 3},
		{.chunk_ms = 40000, .workers = 30, .first = 30},
		{.chunk_ms = 2000, .workers = 9, .first = 1, .late_ms = 15000},
		{.chunk_ms = 2000, .workers = 12, .first = 4, .late_ms = 19000},
		{.chunk_ms = 2000, .workers = 9, .first = 1, .late_ms = 30000, .imports_ms = 20000},
	};
	struct live_progress p;
	double end, last;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		struct live *live = live_new();
		struct live_worker *w = add(live, 1), *others[30] = {w};
		int ended, checked = 0, workers = 1;
		int64_t now;

		live_prefix_of(live, (struct text){"fill", 4})->has_chunks = true;
		end = end_of(&jobs[i]);
		for (now = 1500; (double)now < end; now += 1000) {
			ended = ended_until(&jobs[i], (double)now - 1000, &last);
			for (; workers < jobs[i].workers &&
			       (workers < jobs[i].first ||
				(double)now >= jobs[i].late_ms - jobs[i].imports_ms);
			     workers++)
				others[workers] = add(live, (uint8_t)(workers + 1));
			for (int k = 0; k < workers; k++) {
				others[k]->threads = 1;
				started(others[k],
					k < jobs[i].first || (double)now > jobs[i].late_ms);
				others[k]->heard_ms = START_MS + now;
			}
			tell(live, w, START_MS + now, ended, START_MS + last);
			live_progress_at(live, START_MS + now, &p);
			assert_true(p.known && p.chunks && p.total == CHUNKS && p.done == ended);
			if (ended < CHUNKS * 3 / 10 || ended > CHUNKS * 9 / 10)
				continue;
			checked++;
			if (isnan(p.seconds_left) ||
			    fabs((double)now / 1e3 + p.seconds_left - end / 1e3) > end / 4e3)
				fail_msg("job %zu, %d ended: %f s left of %f", i, ended,
					 p.seconds_left, end / 1e3 - (double)now / 1e3);
		}
		assert_true(checked > 0);
		live_free(live);
	}
}

static void words(void **state)
{
	struct live *live = live_new();
	struct live_worker *w = add(live, 1);
	struct live_cluster c = {0};
	static const struct {
		double seconds;
		const char *due;
	} left[] = {{99, ", about 99 s left"},
		    {100, ", about 2 min left"},
		    {5990, ", about 100 min left"},
		    {6000, ", about 1.7 h left"}};
	struct live_progress p;
	char line[160];

	(void)state;
	live_progress_at(live, START_MS, &p);
	assert_false(p.known);
	c.rate[LIVE_RATE_TASKS] = 1.72;
	live_progress_text(&p, &c, 31, line, sizeof(line));
	assert_string_equal(line, "31 done, 1.7/s");
	c.rate[LIVE_RATE_TASKS] = 0;
	live_progress_text(&p, &c, 31, line, sizeof(line));
	assert_string_equal(line, "31 done");
	c.rate[LIVE_RATE_TASKS] = (double)NAN;
	live_progress_text(&p, &c, 31, line, sizeof(line));
	assert_string_equal(line, "31 done");
	tell(live, w, START_MS + 20000, 31, START_MS + 18000);
	live_progress_at(live, START_MS + 20000, &p); /* no chunk is known yet */
	live_progress_text(&p, &c, 0, line, sizeof(line));
	assert_string_equal(line, "31 of 130 tasks, 1.7/s, about 55 s left");
	live_prefix_of(live, (struct text){"fill", 4})->has_chunks = true;
	tell(live, w, START_MS + 20000, 31, START_MS + 18000);
	live_progress_at(live, START_MS + 20000, &p);
	live_progress_text(&p, &c, 0, line, sizeof(line));
	assert_string_equal(line, "31 of 120 chunks, 1.7/s, about 50 s left");
	live_progress_at(live, START_MS + 29000, &p); /* updated every two seconds */
	live_progress_text(&p, &c, 0, line, sizeof(line));
	assert_string_equal(line, "31 of 120 chunks, 1.7/s, about 41 s left");
	for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++) {
		p.seconds_left = left[i].seconds;
		live_progress_text(&p, &c, 0, line, sizeof(line));
		assert_non_null(strstr(line, left[i].due));
	}
	live_progress_at(live, START_MS + 29500, &p);
	assert_false(p.known);
	tell(live, w, START_MS + 200000, 31, START_MS + 18000); /* no progress */
	live_progress_at(live, START_MS + 200000, &p);
	live_progress_text(&p, &c, 0, line, sizeof(line));
	assert_string_equal(line, "31 of 120 chunks, 1.7/s");
	tell(live, w, START_MS + 20000, 0, 0);
	live_progress_at(live, START_MS + 20000, &p);
	live_progress_text(&p, &c, 0, line, sizeof(line));
	assert_string_equal(line, "0 of 120 chunks");
	tell(live, w, START_MS + 90000, CHUNKS, START_MS + 80000); /* the rest are not chunks */
	live_progress_at(live, START_MS + 90000, &p);
	assert_true(!p.chunks && p.total == CHUNKS + 10 && p.done == CHUNKS);
	live_free(live);
}

/* Two reports by one scheduler are not added up; two schedulers give no total until one is done. */
static void two_who_tell(void **state)
{
	struct live *live = live_new();
	struct live_worker *a = add(live, 1), *b = add(live, 2);
	struct live_progress p;

	(void)state;
	live_prefix_of(live, (struct text){"fill", 4})->has_chunks = true;
	tell(live, a, START_MS + 20000, 31, START_MS + 18000);
	tell(live, b, START_MS + 21000, 33, START_MS + 20000);
	live_progress_at(live, START_MS + 21000, &p);
	assert_true(p.known && p.total == CHUNKS && p.done == 33);
	tell(live, a, START_MS + 22000, 34, START_MS + 21000);
	live_progress_at(live, START_MS + 22000, &p);
	assert_true(p.known && p.total == CHUNKS && p.done == 34);
	scheduler = "Scheduler-2";
	tell(live, b, START_MS + 22000, 5, START_MS + 21000);
	live_progress_at(live, START_MS + 22000, &p);
	assert_false(p.known);
	assert_true(isnan(p.seconds_left));
	scheduler = "Scheduler-1";
	tell(live, a, START_MS + 33000, 60, START_MS + 32000); /* the other one is silent or idle */
	live_progress_at(live, START_MS + 33000, &p);
	assert_true(p.known && p.total == CHUNKS && p.done == 60);
	live_free(live);
}

static void gauges(void **state)
{
	const struct live_progress known = {.known = true,
					    .total = 120,
					    .done = 31,
					    .per_second = 7,
					    .seconds_left = 41.5},
				   unknown = {.total = 1, .done = 2, .seconds_left = (double)NAN};
	struct buf out = BUF_INIT;
	struct sink sink = {.out = &out};
	const char *text;

	(void)state;
	http_metrics_progress(&sink, &known);
	buf_add(&out, "", 1);
	text = (const char *)out.data;
	assert_non_null(strstr(text, "\ncrema_progress_expected 120\n"));
	assert_non_null(strstr(text, "\ncrema_progress_done 31\n"));
	assert_non_null(strstr(text, "\ncrema_progress_seconds_left 41.5\n"));
	buf_clear(&out);
	http_metrics_progress(&sink, &unknown);
	buf_add(&out, "", 1);
	assert_null(strstr((const char *)out.data, "\ncrema_"));
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(estimates),
		cmocka_unit_test(words),
		cmocka_unit_test(two_who_tell),
		cmocka_unit_test(gauges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
