/* SPDX-License-Identifier: BSD-3-Clause */
/* test_names.c - names of a column are shortened where they are equal, never where they differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collector/emit/emit_names.h"
#include "collector/emit/emit_table.h"
#include "collector/emit/emit_text.h"

#define MOST 40

struct names {
	char *v[MOST];
	size_t n;
};

static void add(struct names *names, const char *text)
{
	names->v[names->n++] = strdup(text);
}

/* Different names stay different, and all fit. */
static void shorten(struct names *names, size_t to)
{
	char before[MOST][400];
	size_t i, k;

	for (i = 0; i < names->n; i++)
		snprintf(before[i], sizeof(before[i]), "%s", names->v[i]);
	assert_int_equal(names_shorten(names->v, names->n, to), 0);
	for (i = 0; i < names->n; i++) {
		if (text_width(names->v[i]) > to)
			fail_msg("%zu columns: %s", text_width(names->v[i]), names->v[i]);
		for (k = 0; k < i; k++) {
			if (strcmp(before[i], before[k]) && !strcmp(names->v[i], names->v[k]))
				fail_msg("%s and %s are both %s", before[i], before[k],
					 names->v[i]);
		}
	}
}

static void release(struct names *names)
{
	while (names->n)
		free(names->v[--names->n]);
}

static void check(const char *const *given, const char *const *want, size_t to)
{
	struct names names = {.n = 0};
	size_t i;

	for (i = 0; given[i]; i++)
		add(&names, given[i]);
	shorten(&names, to);
	for (i = 0; given[i]; i++)
		assert_string_equal(names.v[i], want[i]);
	release(&names);
}

static void test_shared_beginning(void **state)
{
	(void)state;
	check((const char *const[]){"nano_lz4.v1.root", "nano_zlib.v1.root", NULL},
	      (const char *const[]){"..lz4.v1.root", "..zlib.v1.root"}, 15);
	/* a name that fits stays, and is ignored when finding common parts */
	check((const char *const[]){"/store/mc/2018A/a.root", "/store/mc/2018B/a.root", "(rest)",
				    NULL},
	      (const char *const[]){"..2018A/a.root", "..2018B/a.root", "(rest)"}, 14);
}

static void test_shared_end(void **state)
{
	(void)state;
	check((const char *const[]){"A_Run2018/NanoAODv9/tree.root",
				    "B_Run2018/NanoAODv9/tree.root", NULL},
	      (const char *const[]){"A..", "B.."}, 12);
}

static void test_middle(void **state)
{
	(void)state;
	/* one name: its end is most useful */
	check((const char *const[]){"/a/long/way/to/one.root", "short", NULL},
	      (const char *const[]){"/a/..o/one.root", "short"}, 15);
	/* equal names stay equal */
	check((const char *const[]){"take_gil_of_the_interpreter", "take_gil_of_the_interpreter",
				    NULL},
	      (const char *const[]){"tak..rpreter", "tak..rpreter"}, 12);
}

/* Any names: random ones that have much in common. */
static void test_any(void **state)
{
	static const char *const parts[] = {"data",	    "/", "mc", "_",    "2018", "\xc3\xa4",
					    "\xe6\x97\xa5", "a", "b",  ".root"};
	struct names names = {.n = 0};
	unsigned int seed = 7, round, i, k;
	char text[400];
	size_t to;

	(void)state;
	for (round = 0; round < 3000; round++) {
		for (i = 0; i < 2 + round % 20; i++) {
			*text = '\0';
			for (k = 0; k < 2 + (round + i) % 17; k++) {
				seed = seed * 1103515245u + 12345u;
				strcat(text, parts[(seed >> 16) % 10]);
			}
			add(&names, text);
		}
		to = 10 + round % 13;
		shorten(&names, to);
		release(&names);
	}
}

/* The only difference is in the middle of the middle. */
static void test_marks(void **state)
{
	struct names names = {.n = 0};
	char text[200];
	int i;

	(void)state;
	for (i = 0; i < 12; i++) {
		memset(text, 'x', sizeof(text));
		text[60 + 5 * i] = 'y';
		text[150] = '\0';
		add(&names, text);
	}
	shorten(&names, 12);
	release(&names);
}

/* A title is never shortened: the table becomes taller instead. */
static void test_titles_stay(void **state)
{
	struct buf b = BUF_INIT;
	struct sink s = {.out = &b};
	struct grid g;
	char name[80];
	int i;

	(void)state;
	grid_init(&g, &s, false);
	grid_columns(&g, "<a title of some length", ">one more number", ">another number",
		     ">a last number, the fourth", NULL);
	for (i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "/a/folder/of/many/parts/and/file_%d.root", i);
		grid_text(&g, name);
		grid_value(&g, value_uint(1), AS_COUNT);
		grid_value(&g, value_uint(2), AS_COUNT);
		grid_value(&g, value_uint(3), AS_COUNT);
	}
	grid_print(&g);
	sink_put(&s, "", 1);
	assert_non_null(strstr((char *)b.data, "a last number, the fourth: 3"));
	assert_non_null(strstr((char *)b.data, "file_2.root"));
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared_beginning),
		cmocka_unit_test(test_shared_end),
		cmocka_unit_test(test_middle),
		cmocka_unit_test(test_any),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_titles_stay),
	};

	return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
