/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_no_memory.c - allocations that fail at any point: a report is complete, or there is none, or
 * the cell of a metric that needs more memory reports that.
 *
 * The linker puts the functions below before malloc() and related functions (tests.mk). Without a
 * sanitizer, which has its own, those of the libraries are refused, too.
 */
#include <unistd.h>

#include "findings_cases.h"

#include "collector/print/render.h"
#include "own_dir.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
#define __real_malloc __libc_malloc
#define __real_calloc __libc_calloc
#define __real_realloc __libc_realloc

void *malloc(size_t n)
{
	return __wrap_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	return __wrap_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	return __wrap_realloc(p, n);
}
#endif

static unsigned long refuse_at, asked; /* 0: none */

static bool refused(void)
{
	return ++asked == refuse_at;
}

void *__wrap_malloc(size_t n)
{
	return refused() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return refused() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return refused() ? NULL : __real_realloc(p, n);
}

static const struct report_request requests[] = {
	{.json = true},
	{0},
	{.tables = REPORT_ALL_TABLES},
	{.all_metrics = true},
	{.list = true},
	{.json = true, .whole_bytes = 1}, /* only the run's records */
	{.list = true, .whole_bytes = 1},
};

#define REQUESTS (sizeof(requests) / sizeof(*requests))

static void write_journal(const struct buf *frames)
{
	static struct framefile f;

	if (*f.path)
		assert_int_equal(unlink(f.path), 0);
	assert_int_equal(framefile_create(&f, dir, "spool", 1, NULL), 0);
	assert_int_equal(framefile_append(&f, frames->data, frames->len), 0);
	framefile_close(&f);
}

static int render(const struct report_request *of, struct buf *out)
{
	struct report_request req = *of;

	req.dir = dir;
	return report_render(&req, out);
}

static bool is_same(const struct buf *whole, const struct buf *out)
{
	return (out->len == whole->len && !memcmp(out->data, whole->data, out->len)) ||
	       memmem(out->data, out->len, "out of memory", 13);
}

/* Fails only the allocation number `first`, then the one `step` later, until there are no more. */
static void each_refused(const char *name, const struct report_request *req, unsigned long first,
			 unsigned long step)
{
	struct buf whole = BUF_INIT, out = BUF_INIT;
	unsigned long n;

	assert_int_equal(render(req, &whole), 0);
	for (n = first; asked >= refuse_at; n += step) {
		asked = 0;
		refuse_at = n;
		if (!render(req, &out) && !is_same(&whole, &out))
			fail_msg("%s, %zu: without request %lu the report is another", name,
				 (size_t)(req - requests), n);
		buf_release(&out);
	}
	refuse_at = 0;
	assert_true(n > 10);
	buf_release(&whole);
}

/* A part of each one's requests, another part of the next one's: most of what they ask for is the
 * same. .ci/run takes more of them, also with sanitizers. */
static unsigned long further(unsigned long step, unsigned long usual)
{
	return getenv("CREMA_FURTHER_CELLS") || getenv("CREMA_ALL_CELLS") ? step : usual;
}

static void test_findings_are_whole_or_none(void **state)
{
	unsigned long step = further(1, 3);
	struct buf frames = BUF_INIT;
	struct fixture *fx;
	size_t i;

	(void)state;
	for (i = 0; i < findings_case_count; i++) {
		if (!strcmp(findings_cases[i].id, "wide_read"))
			continue; /* has columns: without memory their number is unknown */
		fx = fx_new();
		fx->file = &frames;
		assert_true(findings_cases[i].make(fx, AT));
		write_journal(&frames);
		each_refused(findings_cases[i].id, &requests[0], 1 + i % step, step);
		buf_clear(&frames);
		fx_free(fx);
	}
	buf_release(&frames);
}

/* All cases in one journal: not a realistic run, but each kind of message. */
static void test_outputs_are_whole_or_none(void **state)
{
	unsigned long step = further(2, REQUESTS - 1);
	struct buf frames = BUF_INIT;
	struct fixture *fx = fx_new();
	size_t i;

	(void)state;
	fx->file = &frames;
	for (i = 0; i < findings_case_count; i++)
		assert_true(findings_cases[i].make(fx, AT));
	write_journal(&frames);
	for (i = 0; i < REQUESTS; i++)
		each_refused("all", &requests[i], 1 + i % step, step);
	buf_release(&frames);
	fx_free(fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_findings_are_whole_or_none),
		cmocka_unit_test(test_outputs_are_whole_or_none),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
